"""What is noted of traced messages."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from fila.broker.commands import AckGroup, Failure, MakeClaim, Nack
from fila.core import ledger
from fila.core.errors import InvalidArgument, MessageNotFound
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.server.message_codec import add_header, read_message
from fila.telemetry import tracing
from fila.telemetry.tracing import Operation, Parent, Tracer, read_parent
from fila.v1.service_pb2 import EnqueueRequest
from tests.helpers.broker import MS, START, Driver, incoming

DRIVER = Driver()
QUEUE = DRIVER.create("q")
IDS = DRIVER.state.ids
PARENT = Parent("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
SAMPLED = f"00-{PARENT.trace}-{PARENT.span}-01"
UNSAMPLED = f"00-{PARENT.trace}-{PARENT.span}-00"
LANE = Lane(FairKey("acme"), 5, (b"", b""))


def sent(header, lane=LANE):
    message = incoming("q", headers={"traceparent": header} if header else {})
    message.lane = lane
    return message


def stored(header, payload=b"x"):
    message = read_message(EnqueueRequest(headers={"tenant": "acme"}, payload=payload))
    if header:
        add_header(message, "traceparent", header)
    return message.body


def lease(tracer, *records):
    tracer.leased(QUEUE, [(START + number, LANE, record) for number, record in enumerate(records)], 1, 2)


def test_a_parent_is_read_only_from_a_sampled_context():
    assert read_parent(SAMPLED) == PARENT
    assert read_parent(SAMPLED[:-2] + "03") == PARENT
    assert read_parent(UNSAMPLED) is None
    assert read_parent(SAMPLED.upper()) is None


@given(st.text(max_size=60) | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_whatever_the_header_says_it_is_a_parent_or_none(text):
    parent = read_parent(text)
    assert parent is None or (int(parent.trace, 16) and int(parent.span, 16) and int(text[-2:], 16) & 1)


def test_an_enqueue_is_noted_for_sampled_messages_alone():
    tracer = Tracer(DRIVER.state)
    tracer.enqueued([sent(SAMPLED), sent(UNSAMPLED), sent("")], [START, START + 1, START + 2], 1, 2)
    (note,) = tracer.take()
    assert note == (Operation.ENQUEUE, PARENT, "q", IDS.text(START), "acme", 1, 2, "", None, None)
    assert tracer.take() == []
    assert tracer.noted == 1


def test_a_refused_message_is_noted_with_its_error_and_a_repeated_one_is_not():
    tracer = Tracer(DRIVER.state)
    tracer.enqueued([sent(SAMPLED, None), sent(SAMPLED, None)], [InvalidArgument("no"), START], 1, 2)
    (note,) = tracer.take()
    assert (note.error, note.message_id) == ("InvalidArgument", "")


def test_a_lease_is_noted_by_the_header_in_the_record():
    tracer = Tracer(DRIVER.state)
    lease(tracer, stored(SAMPLED), stored(UNSAMPLED), stored(""), b"", stored("")[:3])
    (note,) = tracer.take()
    assert note == (Operation.LEASE, PARENT, "q", IDS.text(START), "acme", 1, 2, "", None, None)


def test_a_header_that_is_cut_off_or_not_text_is_no_header():
    tracer = Tracer(DRIVER.state)
    whole = stored(SAMPLED)
    at = whole.index(b"00-4bf9")
    lease(tracer, whole[: at + 20], whole.replace(b"00-4bf9", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9"))
    assert tracer.take() == []


def test_acks_and_nacks_are_noted_for_traced_messages_that_are_held():
    tracer = Tracer(DRIVER.state)
    lease(tracer, stored(SAMPLED), stored(""), stored(SAMPLED), stored(SAMPLED))
    ids = [IDS.text(START + number) for number in range(4)]
    tracer.take()
    failed = [Failure("q", ids[3], MessageNotFound(ids[3], "q"))]
    tracer.settled([AckGroup("q", ids[:2])], [Nack("q", ids[2]), Nack("q", ids[3])], failed, 3, 4)
    assert [(note.operation, note.message_id, note.error) for note in tracer.take()] == [
        (Operation.ACK, ids[0], ""),
        (Operation.NACK, ids[2], ""),
        (Operation.NACK, ids[3], "MessageNotFound"),
    ]
    tracer.settled([AckGroup("q", ids)], [], [], 5, 6)
    assert tracer.take() == []


def test_too_many_notes_are_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(tracing, "MAX_NOTES", 2)
    tracer = Tracer(DRIVER.state)
    lease(tracer, *[stored(SAMPLED)] * 5)
    assert (len(tracer.take()), tracer.noted, tracer.dropped) == (2, 2, 3)


def test_of_too_many_held_messages_the_oldest_is_forgotten(monkeypatch):
    monkeypatch.setattr(tracing, "MAX_IN_FLIGHT", 2)
    tracer = Tracer(DRIVER.state)
    lease(tracer, *[stored(SAMPLED)] * 3)
    tracer.take()
    ids = [IDS.text(START + number) for number in range(3)]
    tracer.settled([AckGroup("q", ids)], [], [], 3, 4)
    assert [note.message_id for note in tracer.take()] == ids[1:]


def test_the_header_is_found_beside_others():
    message = read_message(
        EnqueueRequest(headers={f"h{number}": "x" * 10 for number in range(10)}, payload=b"p" * 2000)
    )
    add_header(message, "traceparent", SAMPLED)
    decoded = EnqueueRequest.FromString(message.body)
    assert dict(decoded.headers) == dict(message.headers)
    assert decoded.headers["traceparent"] == SAMPLED
    tracer = Tracer(DRIVER.state)
    lease(tracer, message.body)
    assert len(tracer.take()) == 1


def test_nothing_is_noted_of_what_is_no_traced_message():
    tracer = Tracer(DRIVER.state)
    tracer.settled([AckGroup("q", ["x"])], [], [], 1, 2)
    tracer.enqueued([SimpleNamespace(headers={}, queue="q", lane=None)], [START], 1, 2)
    assert tracer.take() == []


def test_a_lease_says_where_the_wait_went():
    driver = Driver()
    queue = driver.create("q")
    tracer = Tracer(driver.state)
    message = incoming("q", stored(SAMPLED), headers={"traceparent": SAMPLED}, delay_ms=500)
    (seq,) = driver.enqueue(message, traced=True)
    tracer.enqueued([message], [seq], 1, 2)
    driver.advance(500)
    driver.advance(250)
    driver.join("q")
    driver.settle_down()
    tracer.take()
    tracer.leased(queue, [(seq, message.lane, message.body)], 3, 4)
    (note,) = tracer.take()
    assert (note.wait.whole, note.wait.delay, note.wait.no_consumer) == (750 * MS, 500 * MS, 250 * MS)
    assert queue.ledger.answer(seq) is None


def test_nobody_asks_for_the_wait_of_what_was_delivered_as_it_came():
    """It is over before the producer is answered, and would be remembered for ever."""
    driver = Driver()
    queue = driver.create("q")
    tracer = Tracer(driver.state)
    driver.join("q")
    driver.settle_down()
    message = incoming("q", stored(SAMPLED), headers={"traceparent": SAMPLED})
    (seq,) = driver.enqueue(message, traced=True)
    assert seq in queue.leases
    tracer.enqueued([message], [seq], 1, 2)
    assert not queue.ledger._asked
    assert len(tracer.take()) == 1


def trace(driver, tracer, count):
    """Enqueue traced messages."""
    messages = [incoming("q", stored(SAMPLED), headers={"traceparent": SAMPLED}) for _ in range(count)]
    tracer.enqueued(messages, driver.enqueue(*messages, traced=True), 1, 2)


def test_messages_that_are_gone_take_no_room_from_those_that_wait(monkeypatch):
    monkeypatch.setattr(ledger, "MAX_ASKED", 3)
    driver = Driver()
    queue = driver.create("q")
    tracer = Tracer(driver.state)
    trace(driver, tracer, 3)
    assert driver.purge("q") == 3
    trace(driver, tracer, 1)
    (seq,) = driver.places()
    driver.advance(250)
    driver.join("q")
    driver.settle_down()
    assert round(queue.ledger.answer(seq).whole / MS) == 250


def test_nor_do_those_whose_wait_nobody_fetched(monkeypatch):
    """What is delivered in a claim is not traced any further. Of such waits the latest are kept."""
    monkeypatch.setattr(ledger, "MAX_ASKED", 3)
    driver = Driver()
    queue = driver.create("q")
    tracer = Tracer(driver.state)
    for after in range(3):
        trace(driver, tracer, 3)
        driver.ask(lambda reply, after=after: MakeClaim("q", "g", after, 0, reply))
    first, *_, last = sorted(driver.places())
    assert queue.ledger.answer(first) is None
    assert queue.ledger.answer(last) is not None


def test_a_wait_that_nobody_fetched_gives_way_to_the_next_one():
    """The message came back before anybody saw it."""
    driver = Driver()
    queue = driver.create("q")
    tracer = Tracer(driver.state)
    trace(driver, tracer, 1)
    lost = driver.join("q")
    driver.settle_down()
    driver.leave(lost)
    driver.settle_down()
    driver.advance(250)
    driver.join("q")
    driver.settle_down()
    (seq,) = driver.places()
    assert round(queue.ledger.answer(seq).whole / MS) == 250
    assert queue.ledger.answer(seq) is None


def test_the_broker_begins_so_many_traces_a_second_of_each_operation_and_no_more():
    """Whoever is in a trace that is not sampled is left out and uses up nothing."""
    tracer = Tracer(DRIVER.state, own_a_second=2)
    second = 1_000_000_000
    numbers = range(START, START + 5)

    def work(began):
        tracer.enqueued([sent(UNSAMPLED), *[sent("")] * 4], numbers, began, began + 1)
        tracer.leased(QUEUE, [(seq, LANE, stored("")) for seq in numbers], began, began + 1)
        acks = [AckGroup("q", [IDS.text(seq) for seq in numbers])]
        tracer.leased(QUEUE, [(START, LANE, stored(""))], began, began + 1, tracing.UNSAMPLED)
        for caller in (tracing.UNSAMPLED, None):
            settling = tracer.settling(acks, [], caller, began)
            tracer.settled(acks, [], [], began, began + 1, settling)
        return [note.operation for note in tracer.take()]

    twice = [Operation.ENQUEUE] * 2 + [Operation.LEASE] * 2 + [Operation.ACK] * 2
    assert work(5 * second) == twice
    assert work(5 * second + 1) == []
    assert work(6 * second) == twice


def test_a_trace_that_begins_here_has_no_parent():
    tracer = Tracer(DRIVER.state, own_a_second=1)
    tracer.enqueued([sent("")], [START], 1, 2)
    (note,) = tracer.take()
    assert note.parent.span == ""
    assert int(note.parent.trace, 16)
