"""The base of the classes whose methods call the FilaAdmin service."""

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp

from fila.client.connection import Connection
from fila.v1 import admin_pb2, service_pb2

if TYPE_CHECKING:
    from fila.v1.admin_pb2_grpc import FilaAdminAsyncStub
    from fila.v1.service_pb2_grpc import FilaServiceAsyncStub


class AdminService:
    """FilaAdmin over one connection: `await service.call(service.stub.ListQueues, request)`. Raises FilaError."""

    def __init__(self, connection: Connection) -> None:
        self.call = connection.call
        self.timeout_s = connection.timeout_s
        self.stub: FilaAdminAsyncStub = connection.methods(admin_pb2, "FilaAdmin")
        self.service: FilaServiceAsyncStub = connection.methods(service_pb2, "FilaService")


class AdminCalls(ABC):
    """Methods that call FilaAdmin. All of them raise FilaError."""

    @abstractmethod
    def _admin(self) -> AdminService:
        """What the calls go through. Raises ClientClosedError."""


def moment(stamp: Timestamp) -> datetime:
    """A point in time, in UTC."""
    return stamp.ToDatetime(UTC)
