"""Two-way streams: one request at a time, in order, and what goes wrong on one stays on it."""

import asyncio
from collections import deque

import pytest

from fila.core.errors import InvalidArgument, Overloaded, QueueNotFound, ShuttingDown, StoreBusy
from fila.server.streams import RefusedRequest, Streams, Talk
from fila.wire.stream import EOF


class Caller:
    """A call as its handler sees it. What is sent stays in `unsent` while the caller reads nothing."""

    def __init__(self, *requests):
        self.requests = deque(requests)
        self.answers = []
        self.unsent = deque()
        self.reads = True
        self.began = False
        self.on_readable = self.on_writable = None

    def take(self):
        return self.requests.popleft() if self.requests else None

    def ready_to_send(self):
        return not self.unsent

    def send(self, answer):
        (self.answers if self.reads else self.unsent).append(answer)

    def flush(self):
        pass

    async def send_initial_metadata(self, metadata=()):
        self.began = True

    def ask(self, request):
        self.requests.append(request)
        self.on_readable()

    def read_on(self):
        self.answers += self.unsent
        self.unsent.clear()
        self.on_writable()


class Wrong(str):
    """A request that is refused when it is asked."""

    __slots__ = ()


class Asked:
    """Takes requests and answers them when told to."""

    def __init__(self):
        self.requests = []
        self._replies = deque()

    def __call__(self, request, reply):
        if isinstance(request, Wrong):
            raise Overloaded(request)
        self.requests.append(request)
        self._replies.append(reply)

    def answer(self, answer, encode=str.upper):
        self._replies.popleft()(encode, answer)


def talk(asked):
    return Talk(asked, lambda request: len(str(request)), lambda sequence, error: (sequence, str(error)))


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


def conversation(scenario):
    """Run a test with a stream that is being served."""

    def test():
        async def run():
            streams, caller, asked = Streams(), Caller(), Asked()
            served = asyncio.ensure_future(streams.serve(caller, talk(asked)))
            await asyncio.sleep(0)
            await scenario(streams, caller, asked, served)
            if not served.done():
                served.cancel()
                await asyncio.gather(served, return_exceptions=True)

        asyncio.run(asyncio.wait_for(run(), 10))

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


@conversation
async def test_a_request_is_taken_when_the_one_before_is_answered(streams, caller, asked, served):
    for request in "abc":
        caller.ask(request)
    assert asked.requests == ["a"]
    asked.answer("a")
    assert (asked.requests, caller.answers) == (["a", "b"], ["A"])
    asked.answer("b")
    asked.answer("c")
    assert caller.answers == ["A", "B", "C"]
    caller.ask(EOF)
    await served


@conversation
async def test_what_came_before_the_handler_is_not_forgotten(streams, caller, asked, served):
    early = Caller("first")
    late = asyncio.ensure_future(streams.serve(early, talk(asked)))
    await asyncio.sleep(0)
    assert asked.requests == ["first"]
    late.cancel()


@conversation
async def test_a_caller_that_does_not_read_is_asked_for_nothing_more(streams, caller, asked, served):
    """So that answers do not pile up for it."""
    caller.reads = False
    for request in "abc":
        caller.ask(request)
    asked.answer("a")
    assert asked.requests == ["a"]
    caller.reads = True
    caller.read_on()
    assert (asked.requests, caller.answers) == (["a", "b"], ["A"])


@conversation
async def test_a_request_that_is_refused_is_answered_with_its_number_and_the_stream_goes_on(
    streams, caller, asked, served
):
    """Whether it is refused before it is decoded, when it is asked, or by the broker's answer."""
    for request in (RefusedRequest(7, Overloaded("first")), Wrong("second"), "third", "fourth"):
        caller.ask(request)
    await until(lambda: asked.requests == ["third"])
    asked.answer(QueueNotFound("q"))
    await until(lambda: asked.requests == ["third", "fourth"])
    asked.answer("fourth")
    assert caller.answers == [(7, "first"), (6, "second"), (5, 'queue "q" does not exist'), "FOURTH"]
    caller.ask(EOF)
    await served


@conversation
async def test_a_refused_request_whose_number_is_not_known_ends_the_stream(streams, caller, asked, served):
    caller.ask(InvalidArgument("too much"))
    with pytest.raises(InvalidArgument):
        await served
    assert caller.answers == []


@conversation
async def test_refusals_take_turns_with_everybody_else(streams, caller, asked, served):
    """Of a caller that sends nothing but nonsense, one request is refused in a turn of the event loop."""
    for _ in range(5):
        caller.ask(Wrong("nonsense"))
    counts = []
    while len(caller.answers) < 5:
        counts.append(len(caller.answers))
        await asyncio.sleep(0)
    assert counts == [1, 2, 3, 4]


@conversation
async def test_a_refusal_after_which_nothing_can_succeed_ends_the_stream(streams, caller, asked, served):
    caller.ask("a")
    asked.answer(StoreBusy("the store has fallen behind"))
    with pytest.raises(StoreBusy):
        await served
    assert caller.answers == []


@conversation
async def test_response_headers_come_before_the_first_request(streams, caller, asked, served):
    assert caller.began
    assert asked.requests == []


@conversation
async def test_an_answer_that_cannot_be_encoded_ends_its_stream_and_reaches_nobody_else(streams, caller, asked, served):
    """The broker calls the reply in the middle of its work: nothing may be raised there."""
    caller.ask("a")
    asked.answer("a", encode=lambda answer: answer / 0)
    with pytest.raises(TypeError):
        await served


@conversation
async def test_an_answer_for_a_caller_that_has_gone_is_dropped(streams, caller, asked, served):
    caller.ask("a")
    served.cancel()
    await asyncio.gather(served, return_exceptions=True)
    asked.answer("a")
    assert caller.answers == []


@conversation
async def test_stopping_ends_who_waits_at_once_and_the_others_after_their_answer(streams, caller, asked, served):
    idle = asyncio.ensure_future(streams.serve(Caller(), talk(asked)))
    await asyncio.sleep(0)
    caller.ask("a")
    caller.ask("b")
    streams.stop()
    with pytest.raises(ShuttingDown):
        await idle
    assert not served.done()
    asked.answer("a")
    with pytest.raises(ShuttingDown):
        await served
    assert (asked.requests, caller.answers) == (["a"], ["A"])
    with pytest.raises(ShuttingDown):
        await streams.serve(Caller("late"), talk(asked))
