import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_UNSPECIFIED: _ClassVar[Isolation]
    ISOLATION_SUSPECT: _ClassVar[Isolation]
    ISOLATION_CONFIRMED: _ClassVar[Isolation]

class DeadLetterReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEAD_LETTER_REASON_UNSPECIFIED: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_MAX_ATTEMPTS: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_ON_FAILURE: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_REJECTED: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_MAX_DEPTH: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_MAX_BYTES: _ClassVar[DeadLetterReason]

class AttemptEnd(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_END_UNSPECIFIED: _ClassVar[AttemptEnd]
    ATTEMPT_END_NACKED: _ClassVar[AttemptEnd]
    ATTEMPT_END_EXPIRED: _ClassVar[AttemptEnd]
    ATTEMPT_END_RETURNED: _ClassVar[AttemptEnd]
    ATTEMPT_END_LOST: _ClassVar[AttemptEnd]
    ATTEMPT_END_LOST_ALONE: _ClassVar[AttemptEnd]
ISOLATION_UNSPECIFIED: Isolation
ISOLATION_SUSPECT: Isolation
ISOLATION_CONFIRMED: Isolation
DEAD_LETTER_REASON_UNSPECIFIED: DeadLetterReason
DEAD_LETTER_REASON_MAX_ATTEMPTS: DeadLetterReason
DEAD_LETTER_REASON_ON_FAILURE: DeadLetterReason
DEAD_LETTER_REASON_REJECTED: DeadLetterReason
DEAD_LETTER_REASON_MAX_DEPTH: DeadLetterReason
DEAD_LETTER_REASON_MAX_BYTES: DeadLetterReason
ATTEMPT_END_UNSPECIFIED: AttemptEnd
ATTEMPT_END_NACKED: AttemptEnd
ATTEMPT_END_EXPIRED: AttemptEnd
ATTEMPT_END_RETURNED: AttemptEnd
ATTEMPT_END_LOST: AttemptEnd
ATTEMPT_END_LOST_ALONE: AttemptEnd

class Message(_message.Message):
    __slots__ = ("id", "headers", "payload", "metadata", "timestamps")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    id: str
    headers: _containers.ScalarMap[str, str]
    payload: bytes
    metadata: MessageMetadata
    timestamps: MessageTimestamps
    def __init__(self, id: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., metadata: _Optional[_Union[MessageMetadata, _Mapping]] = ..., timestamps: _Optional[_Union[MessageTimestamps, _Mapping]] = ...) -> None: ...

class MessageMetadata(_message.Message):
    __slots__ = ("fairness_key", "weight", "throttle_keys", "attempt_count", "queue_id", "priority", "cost", "lease_id", "dead_letter", "isolation")
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    weight: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    attempt_count: int
    queue_id: str
    priority: int
    cost: int
    lease_id: str
    dead_letter: DeadLetter
    isolation: Isolation
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., attempt_count: _Optional[int] = ..., queue_id: _Optional[str] = ..., priority: _Optional[int] = ..., cost: _Optional[int] = ..., lease_id: _Optional[str] = ..., dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ..., isolation: _Optional[_Union[Isolation, str]] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("source_queue", "died_at", "reason", "attempts")
    SOURCE_QUEUE_FIELD_NUMBER: _ClassVar[int]
    DIED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    source_queue: str
    died_at: _timestamp_pb2.Timestamp
    reason: DeadLetterReason
    attempts: _containers.RepeatedCompositeFieldContainer[FailedAttempt]
    def __init__(self, source_queue: _Optional[str] = ..., died_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[_Union[DeadLetterReason, str]] = ..., attempts: _Optional[_Iterable[_Union[FailedAttempt, _Mapping]]] = ...) -> None: ...

class FailedAttempt(_message.Message):
    __slots__ = ("attempt", "failed_at", "kind", "error")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FAILED_AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    failed_at: _timestamp_pb2.Timestamp
    kind: AttemptEnd
    error: str
    def __init__(self, attempt: _Optional[int] = ..., failed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Union[AttemptEnd, str]] = ..., error: _Optional[str] = ...) -> None: ...

class MessageTimestamps(_message.Message):
    __slots__ = ("enqueued_at", "leased_at")
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_FIELD_NUMBER: _ClassVar[int]
    enqueued_at: _timestamp_pb2.Timestamp
    leased_at: _timestamp_pb2.Timestamp
    def __init__(self, enqueued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., leased_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
