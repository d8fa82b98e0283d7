from fila.v1 import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnqueueRequest(_message.Message):
    __slots__ = ("queue", "headers", "payload", "delay_ms", "priority", "dedup_key")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DEDUP_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    headers: _containers.ScalarMap[str, str]
    payload: bytes
    delay_ms: int
    priority: int
    dedup_key: str
    def __init__(self, queue: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., delay_ms: _Optional[int] = ..., priority: _Optional[int] = ..., dedup_key: _Optional[str] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ("message_id",)
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    def __init__(self, message_id: _Optional[str] = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ("messages", "producer_id", "sequence", "queue")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[EnqueueRequest]
    producer_id: str
    sequence: int
    queue: str
    def __init__(self, messages: _Optional[_Iterable[_Union[EnqueueRequest, _Mapping]]] = ..., producer_id: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ...) -> None: ...

class EncodedEnqueueBatch(_message.Message):
    __slots__ = ("messages", "producer_id", "sequence", "queue")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedScalarFieldContainer[bytes]
    producer_id: str
    sequence: int
    queue: str
    def __init__(self, messages: _Optional[_Iterable[bytes]] = ..., producer_id: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ("results", "sequence")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EnqueueResult]
    sequence: int
    def __init__(self, results: _Optional[_Iterable[_Union[EnqueueResult, _Mapping]]] = ..., sequence: _Optional[int] = ...) -> None: ...

class EnqueueResult(_message.Message):
    __slots__ = ("message_id", "error")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    error: _messages_pb2.Error
    def __init__(self, message_id: _Optional[str] = ..., error: _Optional[_Union[_messages_pb2.Error, _Mapping]] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("queue", "max_in_flight")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_in_flight: int
    def __init__(self, queue: _Optional[str] = ..., max_in_flight: _Optional[int] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ("queue", "message_id", "lease_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    lease_id: str
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., lease_id: _Optional[str] = ...) -> None: ...

class AckResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NackRequest(_message.Message):
    __slots__ = ("queue", "message_id", "error", "lease_id", "delay_ms", "release")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    error: str
    lease_id: str
    delay_ms: int
    release: bool
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[str] = ..., lease_id: _Optional[str] = ..., delay_ms: _Optional[int] = ..., release: _Optional[bool] = ...) -> None: ...

class NackResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExtendLeaseRequest(_message.Message):
    __slots__ = ("queue", "message_id", "lease_id", "extend_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    EXTEND_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    lease_id: str
    extend_ms: int
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., lease_id: _Optional[str] = ..., extend_ms: _Optional[int] = ...) -> None: ...

class ExtendLeaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("acks", "nacks", "extends", "sequence")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    NACKS_FIELD_NUMBER: _ClassVar[int]
    EXTENDS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    acks: _containers.RepeatedCompositeFieldContainer[AckGroup]
    nacks: _containers.RepeatedCompositeFieldContainer[NackRequest]
    extends: _containers.RepeatedCompositeFieldContainer[ExtendGroup]
    sequence: int
    def __init__(self, acks: _Optional[_Iterable[_Union[AckGroup, _Mapping]]] = ..., nacks: _Optional[_Iterable[_Union[NackRequest, _Mapping]]] = ..., extends: _Optional[_Iterable[_Union[ExtendGroup, _Mapping]]] = ..., sequence: _Optional[int] = ...) -> None: ...

class AckGroup(_message.Message):
    __slots__ = ("queue", "lease_id", "message_ids")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    lease_id: str
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queue: _Optional[str] = ..., lease_id: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ExtendGroup(_message.Message):
    __slots__ = ("queue", "lease_id", "message_ids", "extend_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    EXTEND_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    lease_id: str
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    extend_ms: int
    def __init__(self, queue: _Optional[str] = ..., lease_id: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ..., extend_ms: _Optional[int] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("sequence", "failures")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    failures: _containers.RepeatedCompositeFieldContainer[SettleFailure]
    def __init__(self, sequence: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[SettleFailure, _Mapping]]] = ...) -> None: ...

class SettleFailure(_message.Message):
    __slots__ = ("queue", "message_id", "error", "message_exists")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_EXISTS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    error: _messages_pb2.Error
    message_exists: bool
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[_Union[_messages_pb2.Error, _Mapping]] = ..., message_exists: _Optional[bool] = ...) -> None: ...
