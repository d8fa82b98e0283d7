from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EncodedEnqueueBatch(_message.Message):
    __slots__ = ("messages", "producer_id", "sequence", "queue", "producer_epoch")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedScalarFieldContainer[bytes]
    producer_id: str
    sequence: int
    queue: str
    producer_epoch: int
    def __init__(self, messages: _Optional[_Iterable[bytes]] = ..., producer_id: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class EncodedStageEnqueue(_message.Message):
    __slots__ = ("messages", "producer", "transaction", "part", "sequence", "queue", "ttl_ms")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedScalarFieldContainer[bytes]
    producer: str
    transaction: int
    part: str
    sequence: int
    queue: str
    ttl_ms: int
    def __init__(self, messages: _Optional[_Iterable[bytes]] = ..., producer: _Optional[str] = ..., transaction: _Optional[int] = ..., part: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class RpcStatus(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...
