"""How acks, nacks and extensions become batches, and whose failure is whose."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client.errors import AckManyError, FilaTimeoutError, InvalidArgumentError, MessageNotFoundError
from fila.client.message import ConsumeMessage
from fila.client.reply import ThreadReply
from fila.client.settle_stream import Settle, SettleCodec
from fila.client.settlements import (
    MAX_BATCH_IDS,
    Ack,
    Extend,
    Nack,
    ack,
    ack_groups,
    check_all,
    check_one,
    extend,
    nack,
)
from fila.server import settle_codec
from fila.v1 import errors_pb2, messages_pb2, service_pb2


def settle(*settlements) -> Settle:
    return Settle(ThreadReply(), 1.0, settlements)


def refusal(*ids: str, kind=errors_pb2.ERROR_KIND_LEASE_ENDED) -> bytes:
    made = service_pb2.SettleResponse(sequence=1)
    for each in ids:
        made.failures.add(queue="q", message_id=each, error={"kind": kind, "message": f"message {each} is not leased"})
    return made.SerializeToString()


def delivered(message_id: str, lease_id: str = "l") -> ConsumeMessage:
    wire = messages_pb2.Message(id=message_id, metadata=messages_pb2.MessageMetadata(lease_id=lease_id))
    return ConsumeMessage(None, "q", wire)


def filled(kind):
    """A settlement that says something in every field."""
    values = {int: 7, bool: True, Sequence[str]: ["its id"]}
    return kind(**{each.name: values.get(each.type, f"this {each.name}") for each in fields(kind)})


def values_of(said):
    return sorted(str(value[0] if isinstance(value, list) else value) for value in asdict(said).values())


@pytest.mark.parametrize(
    "kind, group, read",
    [
        (Ack, "acks", lambda wire: settle_codec.read_acks([wire])[0]),
        (Nack, "nacks", settle_codec.read_nack),
        (Extend, "extends", lambda wire: settle_codec.read_extends([wire])[0]),
    ],
)
def test_everything_that_a_settlement_says_reaches_the_broker(kind, group, read):
    """Every field of the SDK's value, of the contract and of the broker's value: none is left out on the way."""
    said = filled(kind)
    batch = SettleCodec().make_batch(deque([settle(said)]))
    (wire,) = getattr(service_pb2.SettleRequest.FromString(batch.data), group)
    assert {field.name for field, _ in wire.ListFields()} == {field.name for field in wire.DESCRIPTOR.fields}
    assert values_of(read(wire)) == values_of(said)


kinds = st.sampled_from(
    [lambda i: Ack("q", "l", i), lambda i: Nack("q", "l", i, "", 0), lambda i: Extend("q", "l", i, 0)]
)
settles = st.builds(lambda kind, ids: settle(kind(sorted(ids))), kinds, st.sets(st.sampled_from("abcdef"), min_size=1))


@given(st.lists(settles, max_size=12))
def test_all_that_waits_leaves_in_order_and_no_batch_names_a_message_twice(waiting):
    gathered, codec, left = deque(waiting), SettleCodec(), []
    while (batch := codec.make_batch(gathered)) is not None:
        left += batch.waiters
        wire = service_pb2.SettleRequest.FromString(batch.data)
        ids = [each for group in (*wire.acks, *wire.extends) for each in group.message_ids]
        ids += [each.message_id for each in wire.nacks]
        assert len(ids) == len(set(ids))
        assert sorted(ids) == sorted(i for s in batch.waiters for part in s.settlements for i in part.message_ids)
    assert left == waiting


def test_acks_under_one_lease_travel_as_one_group():
    gathered = deque(settle(ack("q", each, lease)) for each, lease in [("a", "l"), ("b", "m"), ("c", "l")])
    wire = service_pb2.SettleRequest.FromString(SettleCodec().make_batch(gathered).data)
    assert [(group.lease_id, list(group.message_ids)) for group in wire.acks] == [("l", ["a", "c"]), ("m", ["b"])]


def test_nacks_and_extensions_keep_their_details():
    gathered = deque([settle(nack("q", "a", "boom", 7, "l")), settle(extend("q", "b", None, 9))])
    wire = service_pb2.SettleRequest.FromString(SettleCodec().make_batch(gathered).data)
    assert wire.nacks[0] == service_pb2.NackRequest(queue="q", message_id="a", error="boom", delay_ms=7, lease_id="l")
    assert wire.extends[0] == service_pb2.ExtendGroup(queue="q", message_ids=["b"], extend_ms=9)


def test_only_the_caller_whose_message_was_refused_is_told():
    fine, refused = settle(ack("q", "a", "l")), settle(ack("q", "b", "l"))
    codec = SettleCodec()
    codec.answer(codec.make_batch(deque([fine, refused])), refusal("b"))
    check_one(fine.reply.result())
    with pytest.raises(MessageNotFoundError, match="message b"):
        check_one(refused.reply.result())


def test_an_ack_sent_again_counts_as_done_if_the_message_is_gone_for_good_but_a_nack_does_not():
    acked, nacked = settle(ack("q", "a", "l")), settle(nack("q", "b", "", 0, "l"))
    codec = SettleCodec()
    batch = codec.make_batch(deque([acked, nacked]))
    batch.resent = True
    codec.answer(batch, refusal("a", "b", kind=errors_pb2.ERROR_KIND_MESSAGE_GONE))
    check_one(acked.reply.result())
    with pytest.raises(MessageNotFoundError):
        check_one(nacked.reply.result())


def test_an_ack_sent_again_fails_unless_the_message_is_known_to_be_gone():
    late = settle(ack("q", "a", "l"))
    codec = SettleCodec()
    batch = codec.make_batch(deque([late]))
    batch.resent = True
    codec.answer(batch, refusal("a"))
    with pytest.raises(MessageNotFoundError):
        check_one(late.reply.result())


def test_ack_many_groups_by_lease_names_each_message_once_and_splits():
    messages = [delivered("a"), delivered("b", "m"), delivered("a"), delivered("c")]
    [groups] = ack_groups(messages)
    assert [(group.lease_id, list(group.message_ids)) for group in groups] == [("l", ["a", "c"]), ("m", ["b"])]
    many = [delivered(str(n)) for n in range(MAX_BATCH_IDS + 1)]
    assert [sum(len(group.message_ids) for group in groups) for groups in ack_groups(many)] == [MAX_BATCH_IDS, 1]


def test_ack_many_reports_each_failure_by_message_id():
    lost = MessageNotFoundError("message b is not leased")
    with pytest.raises(AckManyError) as raised:
        check_all([{}, {("q", "b"): lost}])
    assert raised.value.failed == {"b": lost}
    with pytest.raises(FilaTimeoutError):
        check_all([FilaTimeoutError("late"), {("q", "b"): lost}])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ack("q", 5, None),
        lambda: ack(1, "a", None),
        lambda: nack("q", "a", "", "soon", None),
        lambda: nack("q", "a", 5, 0, None),
        lambda: extend("q", "a", 3, 0),
    ],
)
def test_values_of_the_wrong_type_are_invalid_arguments(make):
    with pytest.raises(InvalidArgumentError):
        make()
