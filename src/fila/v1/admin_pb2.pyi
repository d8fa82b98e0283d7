import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueConfig(_message.Message):
    __slots__ = ("visibility_timeout_ms", "fairness_header", "weight_header", "quantum", "dedup_window_ms")
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_HEADER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_HEADER_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    visibility_timeout_ms: int
    fairness_header: str
    weight_header: str
    quantum: int
    dedup_window_ms: int
    def __init__(self, visibility_timeout_ms: _Optional[int] = ..., fairness_header: _Optional[str] = ..., weight_header: _Optional[str] = ..., quantum: _Optional[int] = ..., dedup_window_ms: _Optional[int] = ...) -> None: ...

class CreateQueueRequest(_message.Message):
    __slots__ = ("name", "config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    config: QueueConfig
    def __init__(self, name: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ("queue_id",)
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    def __init__(self, queue_id: _Optional[str] = ...) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ("messages_deleted",)
    MESSAGES_DELETED_FIELD_NUMBER: _ClassVar[int]
    messages_deleted: int
    def __init__(self, messages_deleted: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueSummary]
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueSummary, _Mapping]]] = ...) -> None: ...

class QueueSummary(_message.Message):
    __slots__ = ("name", "depth", "in_flight", "delayed", "active_keys", "consumers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    depth: int
    in_flight: int
    delayed: int
    active_keys: int
    consumers: int
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., delayed: _Optional[int] = ..., active_keys: _Optional[int] = ..., consumers: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("queue", "max_keys")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_KEYS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_keys: int
    def __init__(self, queue: _Optional[str] = ..., max_keys: _Optional[int] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("summary", "config", "created_at", "scheduler", "keys", "counters")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    summary: QueueSummary
    config: QueueConfig
    created_at: _timestamp_pb2.Timestamp
    scheduler: SchedulerStats
    keys: _containers.RepeatedCompositeFieldContainer[KeyStats]
    counters: QueueCounters
    def __init__(self, summary: _Optional[_Union[QueueSummary, _Mapping]] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scheduler: _Optional[_Union[SchedulerStats, _Mapping]] = ..., keys: _Optional[_Iterable[_Union[KeyStats, _Mapping]]] = ..., counters: _Optional[_Union[QueueCounters, _Mapping]] = ...) -> None: ...

class QueueCounters(_message.Message):
    __slots__ = ("enqueued", "delivered", "acked", "nacked", "expired", "returned")
    ENQUEUED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    NACKED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    enqueued: int
    delivered: int
    acked: int
    nacked: int
    expired: int
    returned: int
    def __init__(self, enqueued: _Optional[int] = ..., delivered: _Optional[int] = ..., acked: _Optional[int] = ..., nacked: _Optional[int] = ..., expired: _Optional[int] = ..., returned: _Optional[int] = ...) -> None: ...

class SchedulerStats(_message.Message):
    __slots__ = ("quantum", "round", "active_keys")
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    quantum: int
    round: int
    active_keys: int
    def __init__(self, quantum: _Optional[int] = ..., round: _Optional[int] = ..., active_keys: _Optional[int] = ...) -> None: ...

class KeyStats(_message.Message):
    __slots__ = ("fairness_key", "weight", "pending", "delivered", "deficit")
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    DEFICIT_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., pending: _Optional[int] = ..., delivered: _Optional[int] = ..., deficit: _Optional[int] = ...) -> None: ...

class SetConfigRequest(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SetConfigResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetConfigRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class ListConfigRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ListConfigResponse(_message.Message):
    __slots__ = ("entries", "total_count")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    total_count: int
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., total_count: _Optional[int] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ("dlq_queue", "count")
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    count: int
    def __init__(self, dlq_queue: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ("redriven",)
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    def __init__(self, redriven: _Optional[int] = ...) -> None: ...
