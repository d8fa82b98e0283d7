"""Owning a shard: what is confirmed, what is refused, and who has to step down."""

import asyncio

import pytest

from fila.core.errors import SteppedDown, StoreBusy, StoreFailed
from fila.replicas import tail as tail_module
from fila.replicas.entry import OVERHEAD, Barrier, Kind, read_entry, read_name, write_barrier
from fila.replicas.epochs import Overtaken
from fila.replicas.log import InDoubt, LogUnavailable
from fila.replicas.memory import Fate, MemoryEngine
from fila.replicas.owner import take_over
from fila.replicas.replica import Lost, Mark, Replica
from fila.replicas.tail import Tail
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from tests.support.faulty import FaultyStorage

SHARD = 5


class Member:
    """A store, a tail on the log, and what its owner said."""

    def __init__(self, engine, name="m", store=None):
        self.name = name
        self.fates = []
        self.inner = MemoryStorage()
        self.store = FaultyStorage(self.inner) if store is None else store
        self.log = engine.open(lambda body: self.fates.pop(0) if self.fates else Fate.STANDS)
        self.tail = Tail(self.log, Replica(self.store, SHARD), lambda: asyncio.sleep(0))
        self.ends = []

    async def take_over(self):
        self.owner = await take_over(self.tail, self.name, self.ends.append)
        return self

    async def take_over_if_free(self):
        """Unless somebody is seen to own it meanwhile."""
        seen = self.seen = []
        self.owner = await take_over(
            self.tail, self.name, self.ends.append, seen=seen.append, wanted=lambda: not self.seen
        )
        return self

    async def write(self, *keys, value=b"v"):
        batch = Batch()
        for key in keys:
            batch.put(Family.MESSAGES, key.encode(), value)
        answer = asyncio.get_running_loop().create_future()
        self.owner.write(batch, answer.set_result)
        return await answer

    @property
    def mark(self):
        return self.tail.replica.mark

    def kept(self):
        return [key.decode() for key, _ in self.store.scan(Family.MESSAGES)]


def kinds(engine):
    return [read_entry(body)[0].kind.name for body in engine.bodies]


def scenario(test):
    """Run a coroutine with an engine and a member that owns the shard."""

    def run():
        async def play():
            engine = MemoryEngine()
            await test(engine, await Member(engine).take_over())

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@scenario
async def test_a_beat_is_a_tick_without_changes_that_counts(engine, member):
    await member.owner.beat()
    assert kinds(engine) == ["BARRIER", "TICK"]
    assert member.mark.tick == 1
    assert await member.write("a") is None
    assert member.mark.tick == 2


@scenario
async def test_a_beat_of_an_owner_that_was_deposed_ends_it(engine, member):
    other = await Member(engine, "other").take_over()
    await member.owner.beat()
    assert isinstance(member.owner.ended, SteppedDown)
    assert other.owner.ended is None
    await member.owner.beat()


@scenario
async def test_a_batch_is_confirmed_when_it_counts_and_is_stored(engine, member):
    assert await member.write("a") is None
    assert await member.write("b") is None
    assert (kinds(engine), member.kept(), member.mark) == (["BARRIER", "TICK", "TICK"], ["a", "b"], Mark(1, 0, 2, 2))


@scenario
async def test_batches_are_written_one_at_a_time(engine, member):
    member.owner.write(Batch(), lambda error: None)
    with pytest.raises(RuntimeError, match="one at a time"):
        member.owner.write(Batch(), lambda error: None)


@scenario
async def test_whoever_takes_over_has_all_that_was_confirmed_and_the_old_owner_ends(engine, old):
    await old.write("a")
    new = await Member(engine, "new").take_over()
    assert new.kept() == ["a"]
    error = await old.write("late")
    assert isinstance(error, SteppedDown)
    assert str(error) == "new has taken the shard over; ask there"
    assert old.ends == [error]
    assert await old.write("later") is error
    assert await new.write("b") is None
    assert (new.kept(), old.kept()) == (["a", "b"], ["a"])


@scenario
async def test_an_old_owner_that_writes_into_the_log_deposes_nobody(engine, old):
    """Its tick stands before that of the new owner, which finds its own elsewhere."""
    new = await Member(engine, "new").take_over()
    await old.write("stray")
    assert await new.write("a") is None
    assert new.kept() == ["a"]
    assert new.mark == Mark(2, 0, 1, 3)


@scenario
async def test_an_answer_that_is_lost_is_in_doubt_until_a_barrier_has_decided_it(engine, member):
    member.fates = [Fate.UNANSWERED]
    assert await member.write("a") is None
    assert kinds(engine) == ["BARRIER", "TICK", "BARRIER"]
    assert (member.kept(), member.mark.epoch) == (["a"], 2)
    assert await member.write("b") is None


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.LATE])
def test_what_did_not_stand_before_the_barrier_never_counts(fate):
    @scenario
    async def play(engine, member):
        member.fates = [fate]
        error = await member.write("a")
        assert type(error) is StoreBusy
        assert "nothing was changed" in str(error)
        if engine.late:
            engine.land()
        assert await member.write("b") is None
        assert member.kept() == ["b"]
        assert member.ends == []

    play()


@scenario
async def test_barriers_are_tried_until_one_counts(engine, member):
    member.fates = [Fate.LOST, Fate.LOST, Fate.UNAVAILABLE, Fate.LATE]
    assert type(await member.write("a")) is StoreBusy
    assert (kinds(engine), member.mark.epoch) == (["BARRIER", "BARRIER"], 2)
    engine.land()
    assert await member.write("b") is None
    assert member.mark.epoch == 2


@scenario
async def test_a_barrier_whose_answer_is_lost_counts_all_the_same(engine, member):
    member.fates = [Fate.LOST, Fate.UNANSWERED]
    assert type(await member.write("a")) is StoreBusy
    assert kinds(engine) == ["BARRIER", "BARRIER"]


@pytest.mark.parametrize("fate", [Fate.TWICE_FIRST, Fate.TWICE_LAST, Fate.AGAIN_LATE, Fate.REFUSED])
def test_whatever_else_the_log_does_a_batch_counts_once(fate):
    @scenario
    async def play(engine, member):
        for key in "abc":
            member.fates = [fate]
            assert await member.write(key) is None
        while engine.late:
            engine.land()
        assert await member.write("d") is None
        assert (member.kept(), member.mark.tick, member.mark.epoch) == (["a", "b", "c", "d"], 4, 1)

    play()


@scenario
async def test_a_log_that_is_away_refuses_at_once_and_the_number_is_not_used_again(engine, member):
    member.fates = [Fate.UNAVAILABLE]
    assert type(await member.write("a")) is StoreBusy
    assert await member.write("b") is None
    assert (kinds(engine), member.kept()) == (["BARRIER", "BARRIER", "TICK"], ["b"])


@pytest.mark.parametrize("part", [100, 1 << 20])
@pytest.mark.parametrize("next_step", ["write", "look", "beat"])
def test_a_batch_that_was_refused_and_counts_all_the_same_ends_the_owner(next_step, part):
    """The engine has said that nothing was appended, and was wrong. The broker does not have what the store has."""

    @scenario
    async def play(engine, member):
        member.log.max_entry_bytes = OVERHEAD + part
        member.fates = [Fate.DENIED] if part > 100 else [Fate.STANDS, Fate.STANDS, Fate.DENIED]
        assert type(await member.write("a", "b", "c", value=b"v" * 90)) is StoreBusy
        await (member.write("d") if next_step == "write" else getattr(member.owner, next_step)())
        assert isinstance(member.owner.ended, SteppedDown)
        assert "refused" in str(member.owner.ended)
        assert member.ends == [member.owner.ended]

    play()


@scenario
async def test_a_member_that_slept_through_a_takeover_does_not_depose_its_successor(engine, old):
    """Its last request has no answer; it looks before it writes a barrier."""
    new = await Member(engine, "new").take_over()
    old.fates = [Fate.LOST]
    assert isinstance(await old.write("a"), SteppedDown)
    assert await new.write("b") is None
    assert kinds(engine) == ["BARRIER", "BARRIER", "TICK"]


@scenario
async def test_an_owner_between_whose_epochs_another_stood_is_deposed(engine, old):
    """The other's barrier comes after the look and before the own barrier: what it wrote is not in this broker."""
    append = old.log.append

    async def append_late(body, after):
        if read_entry(body)[0].kind is Kind.BARRIER:
            await Member(engine, "new").take_over()
        return await append(body, after)

    old.log.append = append_late
    old.fates = [Fate.LOST]
    error = await old.write("a")
    assert isinstance(error, SteppedDown)
    assert str(error).startswith("new has taken")


@scenario
async def test_of_two_who_take_over_at_once_one_is_overtaken(engine, old):
    members = [Member(engine, name) for name in ("one", "other")]
    results = await asyncio.gather(*(member.take_over() for member in members), return_exceptions=True)
    winners = [member for member, result in zip(members, results, strict=True) if result is member]
    losers = [result for result in results if isinstance(result, Overtaken)]
    assert (len(winners), len(losers)) == (1, 1)
    assert await winners[0].write("a") is None


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("fate", [Fate.UNAVAILABLE, Fate.LOST, Fate.LATE, Fate.UNANSWERED])
def test_of_two_who_wait_for_an_engine_one_takes_over_and_stays(fate, steps):
    """Whatever becomes of the first barriers of one of them, and whenever the other comes."""

    @scenario
    async def play(engine, old):
        one, other = Member(engine, "one"), Member(engine, "other")
        one.fates = [fate] * 2
        for member in (one, other):
            await member.tail.catch_up()
        trying = asyncio.ensure_future(one.take_over_if_free())
        for _ in range(steps):
            await asyncio.sleep(0)
        results = await asyncio.gather(trying, other.take_over_if_free(), return_exceptions=True)
        while engine.late:
            engine.land()
        [winner] = [result for result in results if isinstance(result, Member)]
        assert sum(isinstance(result, Overtaken) for result in results) == 1
        winner.fates = []
        assert await winner.write("a") is None
        assert winner.mark.epoch == 2

    play()


@scenario
async def test_whoever_waits_for_an_engine_does_not_depose_an_owner_that_lives(engine, owner):
    standby, waits, healed = Member(engine), asyncio.Event(), asyncio.Event()

    async def wait():
        waits.set()
        await healed.wait()

    standby.tail.wait, standby.fates = wait, [Fate.UNAVAILABLE]
    await standby.tail.catch_up()
    taking = asyncio.ensure_future(standby.take_over_if_free())
    await waits.wait()
    assert await owner.write("a") is None
    healed.set()
    with pytest.raises(Overtaken):
        await taking
    assert [each.head.kind for each in standby.seen] == [Kind.TICK]
    assert kinds(engine) == ["BARRIER", "TICK"]


@scenario
async def test_whoever_is_overtaken_has_been_told_by_whom(engine, old):
    standby, counted = Member(engine), []
    append = standby.log.append

    async def append_late(body, after):
        await Member(engine, "winner").take_over()
        return await append(body, after)

    standby.log.append = append_late
    with pytest.raises(Overtaken):
        await take_over(standby.tail, "loser", standby.ends.append, seen=counted.append)
    assert [each.barrier.member for each in counted] == ["m", "winner"]


@scenario
async def test_a_local_write_that_fails_after_the_append_ends_the_owner(engine, member):
    """What it appended counts everywhere else, and in its own store as soon as that works again."""
    member.store.break_now()
    error = await member.write("a")
    assert isinstance(error, SteppedDown)
    assert isinstance(error.__cause__, StoreFailed)
    assert member.kept() == []
    member.store.heal()
    await member.owner.close()
    await member.tail.catch_up()
    other = await Member(engine, "other").take_over()
    assert member.kept() == other.kept() == ["a"]


def test_a_store_that_is_behind_is_waited_for_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(tail_module, "STALL_TRIES", 3)

    async def play():
        engine = MemoryEngine()
        store = FaultyStorage(MemoryStorage(), error=lambda: StoreBusy("behind"))
        member = await Member(engine, store=store).take_over()
        store.break_now()
        writing = asyncio.ensure_future(member.write("a"))
        while not store.refused:
            await asyncio.sleep(0)
        store.heal()
        assert await writing is None
        store.break_now()
        assert isinstance(await member.write("b"), SteppedDown)
        assert store.refused == 5

    asyncio.run(play())


@scenario
async def test_a_batch_that_is_too_large_for_an_entry_goes_in_parts(engine, member):
    member.log.max_entry_bytes = OVERHEAD + 100
    for fates in ([], [Fate.STANDS, Fate.TWICE_LAST], [Fate.TWICE_FIRST, Fate.REFUSED, Fate.AGAIN_LATE]):
        member.fates = fates
        assert await member.write("a", "b", "c", value=b"v" * 90) is None
    assert (member.mark.epoch, member.mark.tick, member.kept()) == (1, 3, ["a", "b", "c"])
    other = await Member(engine, "other").take_over()
    assert other.mark.tick == 3


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.LATE, Fate.UNANSWERED, Fate.UNAVAILABLE])
def test_parts_of_a_batch_that_was_given_up_never_count(fate):
    @scenario
    async def play(engine, member):
        member.log.max_entry_bytes = OVERHEAD + 100
        member.fates = [Fate.STANDS, fate]
        assert type(await member.write("a", "b", "c", value=b"v" * 90)) is StoreBusy
        while engine.late:
            engine.land()
        assert await member.write("d", "e", "f", value=b"v" * 90) is None
        assert member.kept() == ["d", "e", "f"]

    play()


@scenario
async def test_a_batch_that_no_reader_would_take_is_refused(engine, member):
    member.log.max_entry_bytes = OVERHEAD + 1
    error = await member.write("a", value=b"v" * 70_000)
    assert type(error) is StoreFailed
    assert "70006 bytes" in str(error)
    assert kinds(engine) == ["BARRIER"]
    member.log.max_entry_bytes = 1000
    assert await member.write("b") is None


@scenario
async def test_an_owner_that_has_nothing_to_write_learns_that_it_was_deposed(engine, old):
    await old.owner.look()
    assert old.ends == []
    await Member(engine, "new").take_over()
    await old.owner.look()
    assert [str(error) for error in old.ends] == ["new has taken the shard over; ask there"]
    await old.owner.look()
    assert len(old.ends) == 1


@scenario
async def test_a_release_names_a_successor_and_is_the_last_that_is_written(engine, old):
    seen = []
    standby = Member(engine, "new")
    following = asyncio.ensure_future(standby.tail.follow(seen.append))
    writing = asyncio.ensure_future(old.write("a"))
    await asyncio.sleep(0)
    await old.owner.release("new")
    assert await writing is None
    assert isinstance(await old.write("b"), SteppedDown)
    assert old.ends == []
    while not seen or seen[-1].head.kind is not Kind.RELEASE:
        await asyncio.sleep(0)
    assert seen[-1].successor == "new"
    following.cancel()
    new = await standby.take_over()
    assert new.kept() == ["a"]
    assert kinds(engine) == ["BARRIER", "TICK", "RELEASE", "BARRIER"]
    await old.owner.release("nobody")
    assert len(engine.bodies) == 4


@pytest.mark.parametrize("fate, error", [(Fate.LOST, InDoubt), (Fate.UNAVAILABLE, LogUnavailable)])
def test_a_release_that_nobody_may_hear_of_says_so_and_ends_the_owner_all_the_same(fate, error):
    @scenario
    async def play(engine, member):
        member.fates = [fate]
        with pytest.raises(error):
            await member.owner.release("other")
        assert isinstance(await member.write("a"), SteppedDown)

    play()


@scenario
async def test_closing_answers_the_batch_in_hand_and_the_member_can_follow_again(engine, member):
    writing = asyncio.ensure_future(member.write("a"))
    await asyncio.sleep(0)
    await member.owner.close()
    assert isinstance(await writing, SteppedDown)
    assert member.ends == []
    following = asyncio.ensure_future(member.tail.follow())
    other = await Member(engine, "other").take_over()
    await other.write("b")
    while member.mark != other.mark:
        await asyncio.sleep(0)
    following.cancel()
    assert member.kept() == other.kept()


@scenario
async def test_an_engine_that_forgot_what_it_acknowledged_ends_the_owner(engine, member):
    for key in "abc":
        await member.write(key)
    engine.lose(2, 2)
    assert isinstance((await member.write("d")).__cause__, Lost)


@pytest.mark.parametrize("read", ["follow", "catch_up"])
def test_a_member_that_has_read_further_than_the_log_reaches_does_not_go_on(read, monkeypatch):
    monkeypatch.setattr(tail_module, "LOW_S", 0)

    @scenario
    async def play(engine, member):
        await member.write("a")
        engine.lose(1)
        with pytest.raises(Lost, match="ends at 1, but this member has read position 1"):
            await getattr(member.tail, read)()

    play()


@pytest.mark.parametrize("read", ["follow", "catch_up"])
def test_a_leader_that_does_not_know_the_end_yet_is_asked_again(read):
    @scenario
    async def play(engine, member):
        await member.write("a")
        ends = [0, 1, 1]
        know, asked = member.log.end, []

        async def end():
            asked.append(await know())
            return ends.pop(0) if ends else asked[-1]

        member.log.end = end
        reading = asyncio.ensure_future(getattr(member.tail, read)())
        while len(asked) < 4:
            assert not reading.done(), "it has given up"
            await asyncio.sleep(0)
        other = await Member(engine, "other").take_over()
        if read == "follow":
            while member.mark != other.mark:
                await asyncio.sleep(0)
            reading.cancel()
        else:
            await reading

    play()


@pytest.mark.parametrize("work", [lambda owner: owner.look(), lambda owner: owner.beat(), lambda o: o.release("x")])
@pytest.mark.parametrize("writes", [True, False])
def test_whatever_waits_for_a_log_that_is_away_can_be_ended(work, writes):
    """What others ask for, by whoever waits for it, and a batch in hand by closing."""

    @scenario
    async def play(engine, member):
        async def append(body, after):
            engine.fail()
            raise InDoubt("no answer")

        member.log.append = append
        writing = asyncio.ensure_future(member.write("a")) if writes else None
        await asyncio.sleep(0)
        if not writes:
            engine.fail()
        working = asyncio.ensure_future(work(member.owner))
        for _ in range(10):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert writing is None or not writing.done()
        await member.owner.close()
        assert writing is None or isinstance(await writing, SteppedDown)
        engine.heal()
        other = await Member(engine, "other").take_over()
        await member.tail.catch_up()
        assert member.mark == other.mark

    play()


@scenario
async def test_a_follower_waits_for_a_log_that_is_away(engine, owner):
    standby = Member(engine)
    following = asyncio.ensure_future(standby.tail.follow())
    await owner.write("a")
    while standby.mark.tick < 1:
        await asyncio.sleep(0)
    engine.fail()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not following.done()
    engine.heal()
    await owner.write("b")
    await owner.write("c")
    while standby.mark.tick < owner.mark.tick:
        await asyncio.sleep(0)
    following.cancel()
    assert standby.kept() == owner.kept()


@scenario
async def test_a_takeover_waits_for_a_log_that_is_away(engine, old):
    engine.fail()
    taking = asyncio.ensure_future(Member(engine, "new").take_over())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not taking.done()
    engine.heal()
    assert await (await taking).write("a") is None


@scenario
async def test_a_cancelled_read_loses_nothing(engine, owner):
    for key in "abcdef":
        await owner.write(key)
    standby = Member(engine)
    for steps in range(30):
        following = asyncio.ensure_future(standby.tail.follow())
        for _ in range(steps % 7):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await standby.tail.catch_up()
    assert standby.mark == owner.mark


@scenario
async def test_others_have_their_turn_while_a_follower_applies_much(engine, owner):
    for key in "abcdef":
        await owner.write(key, value=bytes(300_000))
    standby = Member(engine)
    marks = []
    following = asyncio.ensure_future(standby.tail.follow())
    while standby.mark != owner.mark:
        marks.append(standby.mark.tick)
        await asyncio.sleep(0)
    following.cancel()
    assert set(range(1, 6)) <= set(marks)


@scenario
async def test_a_cancel_that_comes_while_a_reader_is_closed_is_not_lost(engine, owner):
    """Closing takes a while, since the reader of an engine has connections to let go of."""
    standby = Member(engine)
    closing = asyncio.Event()
    read = standby.log.read

    async def read_slowly(start):
        try:
            async for entries in read(start):
                yield entries
        finally:
            closing.set()
            for _ in range(5):
                await asyncio.sleep(0)

    standby.log.read = read_slowly
    following = asyncio.ensure_future(standby.tail.follow())
    while standby.mark != owner.mark:
        await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    resting = asyncio.ensure_future(standby.tail.rest())
    await closing.wait()
    resting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resting


@scenario
async def test_names_of_members_are_in_the_log_for_those_who_read_it(engine, member):
    _, body = read_entry(engine.bodies[0])
    assert read_name(body[16:]) == "m"
    engine.stand(write_barrier(SHARD, 9, Barrier(bytes(16), "other")))
    assert "other has taken" in str(await member.write("a"))
