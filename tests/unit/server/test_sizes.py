"""A request that is too large is refused before anything of it is looked at."""

import asyncio
from typing import Any

import pytest

from fila.broker.commands import AckGroup, ExtendGroup, Nack, Settle
from fila.broker.staging import MAX_BATCHES
from fila.config import LimitsConfig
from fila.core.errors import LimitExceeded
from fila.internal import wire_pb2
from fila.server import message_codec, settle_codec
from fila.server.service import FilaService
from fila.server.streams import Streams
from fila.v1 import service_pb2 as pb
from tests.helpers.access import ANYBODY, OpenGate

MOST = 3


class UntouchedBroker:
    """Knows the time, and is not asked for anything else."""

    def now(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


class AnyBroker(UntouchedBroker):
    """Keeps what is submitted."""

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, command: Any) -> None:
        self.submitted.append(command)


@pytest.fixture
def service() -> FilaService:
    broker: Any = UntouchedBroker()
    return FilaService(broker, Streams(), LimitsConfig(max_batch_messages=MOST), OpenGate())


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a request is decoded."""
    monkeypatch.delattr(message_codec, "read_batch")
    for name in ("read_acks", "read_extends", "read_nack"):
        monkeypatch.delattr(settle_codec, name)


@pytest.mark.usefixtures("unread")
class TestTooMany:
    def test_messages_of_a_batch(self, service):
        batch = wire_pb2.EncodedEnqueueBatch(messages=[b"no message"] * 4)
        with pytest.raises(LimitExceeded, match="the batch has 4 messages, 3 are allowed"):
            asyncio.run(service.enqueue_batch(message_codec.Batch(batch, 0), None))

    def test_messages_of_a_batch_on_a_stream(self, service):
        with pytest.raises(LimitExceeded, match="the batch has 4 messages, 3 are allowed"):
            service._take_batch(
                None, ANYBODY, message_codec.Batch(wire_pb2.EncodedEnqueueBatch(messages=[b"no message"] * 4), 0), print
            )

    def test_messages_to_be_staged(self, service):
        staged = wire_pb2.EncodedStageEnqueue(messages=[b"no message"] * 4)
        with pytest.raises(LimitExceeded, match="the batch has 4 messages, 3 are allowed"):
            asyncio.run(service.stage_enqueue(staged, None))

    def test_parts_of_a_transaction(self, service):
        commit = pb.CommitTransactionRequest.FromString(b"\x1a\x00" * (MAX_BATCHES + 1))
        assert len(commit.parts) == MAX_BATCHES + 1
        with pytest.raises(LimitExceeded, match=f"must not have more than {MAX_BATCHES} parts"):
            asyncio.run(service.commit_transaction(commit, None))

    @pytest.mark.parametrize(
        "request_of",
        [
            {"acks": [pb.AckGroup()] * 4},
            {"extends": [pb.ExtendGroup()] * 4},
            {"nacks": [pb.NackRequest()] * 4},
            {"acks": [pb.AckGroup(message_ids=[""] * 4)]},
            {"extends": [pb.ExtendGroup(message_ids=[""] * 4)]},
            {"acks": [pb.AckGroup()], "extends": [pb.ExtendGroup(message_ids=["", ""])], "nacks": [pb.NackRequest()]},
        ],
    )
    def test_messages_or_groups_to_be_settled(self, service, request_of):
        with pytest.raises(LimitExceeded, match="the batch settles 4 messages, 3 are allowed"):
            service._settle_batch(None, ANYBODY, pb.SettleRequest(**request_of), print)


def test_as_many_as_are_allowed_are_settled():
    broker: Any = AnyBroker()
    service = FilaService(broker, Streams(), LimitsConfig(max_batch_messages=MOST), OpenGate())
    request = pb.SettleRequest(
        acks=[pb.AckGroup(message_ids=["a"])], extends=[pb.ExtendGroup()], nacks=[pb.NackRequest()]
    )
    service._settle_batch(None, ANYBODY, request, print)
    assert [command.size for command in broker.submitted] == [MOST]


def test_a_group_that_names_nothing_counts_as_one():
    acks, extends = [AckGroup("q", []), AckGroup("q", ["a", "b"])], [ExtendGroup("q", [])]
    assert Settle(print, acks, [Nack("q", "c")], extends).size == 5
    assert Settle(print).size == 1
