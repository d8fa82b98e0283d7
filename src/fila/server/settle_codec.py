"""What consumers say of messages: acks, nacks and extensions, and which of them failed."""

from collections.abc import Iterable

from fila.broker.commands import AckGroup, ExtendGroup, Failure, Nack
from fila.core.errors import BrokerError
from fila.server.status import write_error
from fila.v1 import service_pb2


def read_acks(groups: Iterable[service_pb2.AckGroup]) -> list[AckGroup]:
    return [AckGroup(group.queue, list(group.message_ids), group.lease_id) for group in groups]


def read_nack(request: service_pb2.NackRequest) -> Nack:
    return Nack(
        request.queue,
        request.message_id,
        request.error,
        request.lease_id,
        request.delay_ms,
        request.release,
        request.dead_letter,
    )


def read_extends(groups: Iterable[service_pb2.ExtendGroup]) -> list[ExtendGroup]:
    return [ExtendGroup(group.queue, list(group.message_ids), group.lease_id, group.extend_ms) for group in groups]


def write_failures(failures: list[Failure], sequence: int) -> service_pb2.SettleResponse:
    return service_pb2.SettleResponse(
        sequence=sequence,
        failures=[
            service_pb2.SettleFailure(
                queue=f.queue,
                message_id=f.message_id,
                error=write_error(f.error),
            )
            for f in failures
        ],
    )


def write_refused(sequence: int, error: BrokerError) -> service_pb2.SettleResponse:
    """The answer to a request that was refused as a whole."""
    return service_pb2.SettleResponse(sequence=sequence, error=write_error(error))
