import datetime

from fila.v1 import messages_pb2 as _messages_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Overflow(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERFLOW_UNSPECIFIED: _ClassVar[Overflow]
    OVERFLOW_REJECT: _ClassVar[Overflow]
    OVERFLOW_DROP_OLDEST: _ClassVar[Overflow]

class KeyOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_ORDER_UNSPECIFIED: _ClassVar[KeyOrder]
    KEY_ORDER_PENDING: _ClassVar[KeyOrder]
    KEY_ORDER_DELIVERED: _ClassVar[KeyOrder]
    KEY_ORDER_WEIGHT: _ClassVar[KeyOrder]
    KEY_ORDER_OLDEST: _ClassVar[KeyOrder]
    KEY_ORDER_NAME: _ClassVar[KeyOrder]

class Hook(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOOK_UNSPECIFIED: _ClassVar[Hook]
    HOOK_ON_ENQUEUE: _ClassVar[Hook]
    HOOK_ON_FAILURE: _ClassVar[Hook]

class HookFailureCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOOK_FAILURE_CAUSE_UNSPECIFIED: _ClassVar[HookFailureCause]
    HOOK_FAILURE_CAUSE_ERROR: _ClassVar[HookFailureCause]
    HOOK_FAILURE_CAUSE_TIMEOUT: _ClassVar[HookFailureCause]
    HOOK_FAILURE_CAUSE_MEMORY: _ClassVar[HookFailureCause]
    HOOK_FAILURE_CAUSE_BAD_RETURN: _ClassVar[HookFailureCause]

class WaitCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_CAUSE_UNSPECIFIED: _ClassVar[WaitCause]
    WAIT_CAUSE_LEASED: _ClassVar[WaitCause]
    WAIT_CAUSE_DELAYED: _ClassVar[WaitCause]
    WAIT_CAUSE_PAUSED: _ClassVar[WaitCause]
    WAIT_CAUSE_NO_CONSUMER: _ClassVar[WaitCause]
    WAIT_CAUSE_NO_CREDIT: _ClassVar[WaitCause]
    WAIT_CAUSE_IN_FLIGHT_CAP: _ClassVar[WaitCause]
    WAIT_CAUSE_THROTTLED: _ClassVar[WaitCause]
    WAIT_CAUSE_BEHIND_OWN_KEY: _ClassVar[WaitCause]
    WAIT_CAUSE_ISOLATED: _ClassVar[WaitCause]
    WAIT_CAUSE_TURN: _ClassVar[WaitCause]

class MessageState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MESSAGE_STATE_UNSPECIFIED: _ClassVar[MessageState]
    MESSAGE_STATE_READY: _ClassVar[MessageState]
    MESSAGE_STATE_DELAYED: _ClassVar[MessageState]
    MESSAGE_STATE_LEASED: _ClassVar[MessageState]

class JournalKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOURNAL_KIND_UNSPECIFIED: _ClassVar[JournalKind]
    JOURNAL_KIND_STARTED: _ClassVar[JournalKind]
    JOURNAL_KIND_COUNTED: _ClassVar[JournalKind]
    JOURNAL_KIND_CONSUMERS: _ClassVar[JournalKind]
    JOURNAL_KIND_ENQUEUED: _ClassVar[JournalKind]
    JOURNAL_KIND_DUE: _ClassVar[JournalKind]
    JOURNAL_KIND_LEASED: _ClassVar[JournalKind]
    JOURNAL_KIND_ACKED: _ClassVar[JournalKind]
    JOURNAL_KIND_NACKED: _ClassVar[JournalKind]
    JOURNAL_KIND_EXPIRED: _ClassVar[JournalKind]
    JOURNAL_KIND_RETURNED: _ClassVar[JournalKind]
    JOURNAL_KIND_DEAD: _ClassVar[JournalKind]
    JOURNAL_KIND_REDRIVEN: _ClassVar[JournalKind]
    JOURNAL_KIND_DROPPED: _ClassVar[JournalKind]
    JOURNAL_KIND_CREATED: _ClassVar[JournalKind]
    JOURNAL_KIND_UPDATED: _ClassVar[JournalKind]
    JOURNAL_KIND_DELETED: _ClassVar[JournalKind]
    JOURNAL_KIND_CONFIGURED: _ClassVar[JournalKind]
    JOURNAL_KIND_RELEASED: _ClassVar[JournalKind]

class AuditResource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_RESOURCE_UNSPECIFIED: _ClassVar[AuditResource]
    AUDIT_RESOURCE_QUEUE: _ClassVar[AuditResource]
    AUDIT_RESOURCE_THROTTLE: _ClassVar[AuditResource]
    AUDIT_RESOURCE_CONFIG: _ClassVar[AuditResource]
    AUDIT_RESOURCE_KEY: _ClassVar[AuditResource]
    AUDIT_RESOURCE_CERTIFICATE: _ClassVar[AuditResource]
    AUDIT_RESOURCE_PRINCIPAL: _ClassVar[AuditResource]
    AUDIT_RESOURCE_ROLE: _ClassVar[AuditResource]

class AuditStage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_STAGE_UNSPECIFIED: _ClassVar[AuditStage]
    AUDIT_STAGE_BEGIN: _ClassVar[AuditStage]
    AUDIT_STAGE_END: _ClassVar[AuditStage]

class ClientAuth(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLIENT_AUTH_UNSPECIFIED: _ClassVar[ClientAuth]
    CLIENT_AUTH_NONE: _ClassVar[ClientAuth]
    CLIENT_AUTH_OPTIONAL: _ClassVar[ClientAuth]
    CLIENT_AUTH_REQUIRED: _ClassVar[ClientAuth]

class TlsVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TLS_VERSION_UNSPECIFIED: _ClassVar[TlsVersion]
    TLS_VERSION_1_2: _ClassVar[TlsVersion]
    TLS_VERSION_1_3: _ClassVar[TlsVersion]

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_WAL: _ClassVar[Durability]
    DURABILITY_FSYNC: _ClassVar[Durability]
OVERFLOW_UNSPECIFIED: Overflow
OVERFLOW_REJECT: Overflow
OVERFLOW_DROP_OLDEST: Overflow
KEY_ORDER_UNSPECIFIED: KeyOrder
KEY_ORDER_PENDING: KeyOrder
KEY_ORDER_DELIVERED: KeyOrder
KEY_ORDER_WEIGHT: KeyOrder
KEY_ORDER_OLDEST: KeyOrder
KEY_ORDER_NAME: KeyOrder
HOOK_UNSPECIFIED: Hook
HOOK_ON_ENQUEUE: Hook
HOOK_ON_FAILURE: Hook
HOOK_FAILURE_CAUSE_UNSPECIFIED: HookFailureCause
HOOK_FAILURE_CAUSE_ERROR: HookFailureCause
HOOK_FAILURE_CAUSE_TIMEOUT: HookFailureCause
HOOK_FAILURE_CAUSE_MEMORY: HookFailureCause
HOOK_FAILURE_CAUSE_BAD_RETURN: HookFailureCause
WAIT_CAUSE_UNSPECIFIED: WaitCause
WAIT_CAUSE_LEASED: WaitCause
WAIT_CAUSE_DELAYED: WaitCause
WAIT_CAUSE_PAUSED: WaitCause
WAIT_CAUSE_NO_CONSUMER: WaitCause
WAIT_CAUSE_NO_CREDIT: WaitCause
WAIT_CAUSE_IN_FLIGHT_CAP: WaitCause
WAIT_CAUSE_THROTTLED: WaitCause
WAIT_CAUSE_BEHIND_OWN_KEY: WaitCause
WAIT_CAUSE_ISOLATED: WaitCause
WAIT_CAUSE_TURN: WaitCause
MESSAGE_STATE_UNSPECIFIED: MessageState
MESSAGE_STATE_READY: MessageState
MESSAGE_STATE_DELAYED: MessageState
MESSAGE_STATE_LEASED: MessageState
JOURNAL_KIND_UNSPECIFIED: JournalKind
JOURNAL_KIND_STARTED: JournalKind
JOURNAL_KIND_COUNTED: JournalKind
JOURNAL_KIND_CONSUMERS: JournalKind
JOURNAL_KIND_ENQUEUED: JournalKind
JOURNAL_KIND_DUE: JournalKind
JOURNAL_KIND_LEASED: JournalKind
JOURNAL_KIND_ACKED: JournalKind
JOURNAL_KIND_NACKED: JournalKind
JOURNAL_KIND_EXPIRED: JournalKind
JOURNAL_KIND_RETURNED: JournalKind
JOURNAL_KIND_DEAD: JournalKind
JOURNAL_KIND_REDRIVEN: JournalKind
JOURNAL_KIND_DROPPED: JournalKind
JOURNAL_KIND_CREATED: JournalKind
JOURNAL_KIND_UPDATED: JournalKind
JOURNAL_KIND_DELETED: JournalKind
JOURNAL_KIND_CONFIGURED: JournalKind
JOURNAL_KIND_RELEASED: JournalKind
AUDIT_RESOURCE_UNSPECIFIED: AuditResource
AUDIT_RESOURCE_QUEUE: AuditResource
AUDIT_RESOURCE_THROTTLE: AuditResource
AUDIT_RESOURCE_CONFIG: AuditResource
AUDIT_RESOURCE_KEY: AuditResource
AUDIT_RESOURCE_CERTIFICATE: AuditResource
AUDIT_RESOURCE_PRINCIPAL: AuditResource
AUDIT_RESOURCE_ROLE: AuditResource
AUDIT_STAGE_UNSPECIFIED: AuditStage
AUDIT_STAGE_BEGIN: AuditStage
AUDIT_STAGE_END: AuditStage
CLIENT_AUTH_UNSPECIFIED: ClientAuth
CLIENT_AUTH_NONE: ClientAuth
CLIENT_AUTH_OPTIONAL: ClientAuth
CLIENT_AUTH_REQUIRED: ClientAuth
TLS_VERSION_UNSPECIFIED: TlsVersion
TLS_VERSION_1_2: TlsVersion
TLS_VERSION_1_3: TlsVersion
DURABILITY_UNSPECIFIED: Durability
DURABILITY_WAL: Durability
DURABILITY_FSYNC: Durability

class QueueConfig(_message.Message):
    __slots__ = ("visibility_timeout_ms", "fairness_header", "weight_header", "quantum", "dedup_window_ms", "throttle_headers", "cost_header", "max_attempts", "retry_delay_ms", "retry_backoff", "retry_max_delay_ms", "retry_jitter", "script", "script_timeout_ms", "script_memory_bytes", "max_depth", "max_bytes", "overflow", "on_enqueue", "on_failure")
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_HEADER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_HEADER_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_HEADERS_FIELD_NUMBER: _ClassVar[int]
    COST_HEADER_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_FIELD_NUMBER: _ClassVar[int]
    RETRY_MAX_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_JITTER_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_ENQUEUE_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    visibility_timeout_ms: int
    fairness_header: str
    weight_header: str
    quantum: int
    dedup_window_ms: int
    throttle_headers: HeaderNames
    cost_header: str
    max_attempts: int
    retry_delay_ms: int
    retry_backoff: float
    retry_max_delay_ms: int
    retry_jitter: float
    script: str
    script_timeout_ms: int
    script_memory_bytes: int
    max_depth: int
    max_bytes: int
    overflow: Overflow
    on_enqueue: str
    on_failure: str
    def __init__(self, visibility_timeout_ms: _Optional[int] = ..., fairness_header: _Optional[str] = ..., weight_header: _Optional[str] = ..., quantum: _Optional[int] = ..., dedup_window_ms: _Optional[int] = ..., throttle_headers: _Optional[_Union[HeaderNames, _Mapping]] = ..., cost_header: _Optional[str] = ..., max_attempts: _Optional[int] = ..., retry_delay_ms: _Optional[int] = ..., retry_backoff: _Optional[float] = ..., retry_max_delay_ms: _Optional[int] = ..., retry_jitter: _Optional[float] = ..., script: _Optional[str] = ..., script_timeout_ms: _Optional[int] = ..., script_memory_bytes: _Optional[int] = ..., max_depth: _Optional[int] = ..., max_bytes: _Optional[int] = ..., overflow: _Optional[_Union[Overflow, str]] = ..., on_enqueue: _Optional[str] = ..., on_failure: _Optional[str] = ...) -> None: ...

class HeaderNames(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateQueueRequest(_message.Message):
    __slots__ = ("name", "config", "parts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    config: QueueConfig
    parts: int
    def __init__(self, name: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., parts: _Optional[int] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ("queue_id",)
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    def __init__(self, queue_id: _Optional[str] = ...) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ("queue", "config")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    queue: str
    config: QueueConfig
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    def __init__(self, config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("queue", "force")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    force: bool
    def __init__(self, queue: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ("messages_deleted",)
    MESSAGES_DELETED_FIELD_NUMBER: _ClassVar[int]
    messages_deleted: int
    def __init__(self, messages_deleted: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "cursor")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueSummary]
    cursor: str
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueSummary, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class QueueSummary(_message.Message):
    __slots__ = ("name", "depth", "in_flight", "delayed", "active_keys", "consumers", "dead_letter_queue", "paused", "parts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    depth: int
    in_flight: int
    delayed: int
    active_keys: int
    consumers: int
    dead_letter_queue: str
    paused: bool
    parts: int
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., delayed: _Optional[int] = ..., active_keys: _Optional[int] = ..., consumers: _Optional[int] = ..., dead_letter_queue: _Optional[str] = ..., paused: _Optional[bool] = ..., parts: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("queue", "max_keys", "sort", "offset", "key_prefix")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_KEYS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_keys: int
    sort: KeyOrder
    offset: int
    key_prefix: str
    def __init__(self, queue: _Optional[str] = ..., max_keys: _Optional[int] = ..., sort: _Optional[_Union[KeyOrder, str]] = ..., offset: _Optional[int] = ..., key_prefix: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("summary", "config", "created_at", "scheduler", "keys", "counters", "runnable", "oldest_at", "deliveries_per_second", "consumers", "throttles", "total_keys", "waits", "groups", "hooks", "waiting_for_hooks", "script_error", "forgotten_delivered", "capacity")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    RUNNABLE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AT_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    THROTTLES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_KEYS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_HOOKS_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_ERROR_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    summary: QueueSummary
    config: QueueConfig
    created_at: _timestamp_pb2.Timestamp
    scheduler: SchedulerStats
    keys: _containers.RepeatedCompositeFieldContainer[KeyStats]
    counters: QueueCounters
    runnable: int
    oldest_at: _timestamp_pb2.Timestamp
    deliveries_per_second: float
    consumers: _containers.RepeatedCompositeFieldContainer[ConsumerStats]
    throttles: _containers.RepeatedCompositeFieldContainer[ThrottleStats]
    total_keys: int
    waits: WaitStats
    groups: _containers.RepeatedCompositeFieldContainer[GroupStats]
    hooks: _containers.RepeatedCompositeFieldContainer[HookStats]
    waiting_for_hooks: int
    script_error: str
    forgotten_delivered: int
    capacity: CapacityStats
    def __init__(self, summary: _Optional[_Union[QueueSummary, _Mapping]] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scheduler: _Optional[_Union[SchedulerStats, _Mapping]] = ..., keys: _Optional[_Iterable[_Union[KeyStats, _Mapping]]] = ..., counters: _Optional[_Union[QueueCounters, _Mapping]] = ..., runnable: _Optional[int] = ..., oldest_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deliveries_per_second: _Optional[float] = ..., consumers: _Optional[_Iterable[_Union[ConsumerStats, _Mapping]]] = ..., throttles: _Optional[_Iterable[_Union[ThrottleStats, _Mapping]]] = ..., total_keys: _Optional[int] = ..., waits: _Optional[_Union[WaitStats, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[GroupStats, _Mapping]]] = ..., hooks: _Optional[_Iterable[_Union[HookStats, _Mapping]]] = ..., waiting_for_hooks: _Optional[int] = ..., script_error: _Optional[str] = ..., forgotten_delivered: _Optional[int] = ..., capacity: _Optional[_Union[CapacityStats, _Mapping]] = ...) -> None: ...

class CapacityStats(_message.Message):
    __slots__ = ("messages", "bytes", "staged_messages", "staged_bytes", "max_depth", "max_bytes", "owner")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    STAGED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    messages: int
    bytes: int
    staged_messages: int
    staged_bytes: int
    max_depth: int
    max_bytes: int
    owner: str
    def __init__(self, messages: _Optional[int] = ..., bytes: _Optional[int] = ..., staged_messages: _Optional[int] = ..., staged_bytes: _Optional[int] = ..., max_depth: _Optional[int] = ..., max_bytes: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...

class HookStats(_message.Message):
    __slots__ = ("hook", "calls", "failures", "breaker_opened", "bypassed", "bypassed_until", "last_error", "last_error_at", "seconds")
    HOOK_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    BREAKER_OPENED_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_AT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    hook: Hook
    calls: int
    failures: _containers.RepeatedCompositeFieldContainer[HookFailures]
    breaker_opened: int
    bypassed: int
    bypassed_until: _timestamp_pb2.Timestamp
    last_error: str
    last_error_at: _timestamp_pb2.Timestamp
    seconds: float
    def __init__(self, hook: _Optional[_Union[Hook, str]] = ..., calls: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[HookFailures, _Mapping]]] = ..., breaker_opened: _Optional[int] = ..., bypassed: _Optional[int] = ..., bypassed_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_error: _Optional[str] = ..., last_error_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., seconds: _Optional[float] = ...) -> None: ...

class HookFailures(_message.Message):
    __slots__ = ("cause", "count")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    cause: HookFailureCause
    count: int
    def __init__(self, cause: _Optional[_Union[HookFailureCause, str]] = ..., count: _Optional[int] = ...) -> None: ...

class WaitStats(_message.Message):
    __slots__ = ("sampled", "mean_seconds", "p50_seconds", "p99_seconds", "parts", "throttles")
    class ThrottlesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SAMPLED_FIELD_NUMBER: _ClassVar[int]
    MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    P50_SECONDS_FIELD_NUMBER: _ClassVar[int]
    P99_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    THROTTLES_FIELD_NUMBER: _ClassVar[int]
    sampled: int
    mean_seconds: float
    p50_seconds: float
    p99_seconds: float
    parts: WaitParts
    throttles: _containers.ScalarMap[str, float]
    def __init__(self, sampled: _Optional[int] = ..., mean_seconds: _Optional[float] = ..., p50_seconds: _Optional[float] = ..., p99_seconds: _Optional[float] = ..., parts: _Optional[_Union[WaitParts, _Mapping]] = ..., throttles: _Optional[_Mapping[str, float]] = ...) -> None: ...

class WaitParts(_message.Message):
    __slots__ = ("delay", "retry", "no_consumer", "throttle", "fair_share")
    DELAY_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    NO_CONSUMER_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_FIELD_NUMBER: _ClassVar[int]
    FAIR_SHARE_FIELD_NUMBER: _ClassVar[int]
    delay: float
    retry: float
    no_consumer: float
    throttle: float
    fair_share: float
    def __init__(self, delay: _Optional[float] = ..., retry: _Optional[float] = ..., no_consumer: _Optional[float] = ..., throttle: _Optional[float] = ..., fair_share: _Optional[float] = ...) -> None: ...

class ConsumerStats(_message.Message):
    __slots__ = ("number", "in_flight", "max_in_flight", "credit")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    number: int
    in_flight: int
    max_in_flight: int
    credit: int
    def __init__(self, number: _Optional[int] = ..., in_flight: _Optional[int] = ..., max_in_flight: _Optional[int] = ..., credit: _Optional[int] = ...) -> None: ...

class GroupStats(_message.Message):
    __slots__ = ("group", "epoch", "floor", "last", "open_claims", "held", "expires_at")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    OPEN_CLAIMS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    group: str
    epoch: int
    floor: int
    last: int
    open_claims: int
    held: int
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, group: _Optional[str] = ..., epoch: _Optional[int] = ..., floor: _Optional[int] = ..., last: _Optional[int] = ..., open_claims: _Optional[int] = ..., held: _Optional[int] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ThrottleStats(_message.Message):
    __slots__ = ("key", "limit", "tokens", "in_flight", "passed", "held_up", "parked_keys")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    HELD_UP_FIELD_NUMBER: _ClassVar[int]
    PARKED_KEYS_FIELD_NUMBER: _ClassVar[int]
    key: str
    limit: str
    tokens: float
    in_flight: int
    passed: int
    held_up: int
    parked_keys: int
    def __init__(self, key: _Optional[str] = ..., limit: _Optional[str] = ..., tokens: _Optional[float] = ..., in_flight: _Optional[int] = ..., passed: _Optional[int] = ..., held_up: _Optional[int] = ..., parked_keys: _Optional[int] = ...) -> None: ...

class QueueCounters(_message.Message):
    __slots__ = ("enqueued", "delivered", "acked", "nacked", "expired", "returned", "dead_lettered", "redriven", "purged", "refused", "dropped")
    ENQUEUED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    NACKED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    enqueued: int
    delivered: int
    acked: int
    nacked: int
    expired: int
    returned: int
    dead_lettered: int
    redriven: int
    purged: int
    refused: int
    dropped: int
    def __init__(self, enqueued: _Optional[int] = ..., delivered: _Optional[int] = ..., acked: _Optional[int] = ..., nacked: _Optional[int] = ..., expired: _Optional[int] = ..., returned: _Optional[int] = ..., dead_lettered: _Optional[int] = ..., redriven: _Optional[int] = ..., purged: _Optional[int] = ..., refused: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("fairness_key", "weight", "pending", "delivered", "deficit", "share", "entitlement", "oldest_at", "parked", "waits")
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    DEFICIT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ENTITLEMENT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AT_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int
    share: float
    entitlement: float
    oldest_at: _timestamp_pb2.Timestamp
    parked: bool
    waits: WaitStats
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., pending: _Optional[int] = ..., delivered: _Optional[int] = ..., deficit: _Optional[int] = ..., share: _Optional[float] = ..., entitlement: _Optional[float] = ..., oldest_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., parked: _Optional[bool] = ..., waits: _Optional[_Union[WaitStats, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("prefix", "limit", "cursor")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    limit: int
    cursor: str
    def __init__(self, prefix: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListConfigResponse(_message.Message):
    __slots__ = ("entries", "total_count", "cursor")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    total_count: int
    cursor: str
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., total_count: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class DeleteConfigRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class DeleteConfigResponse(_message.Message):
    __slots__ = ("existed",)
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: _Optional[bool] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("queue", "message_id", "fairness_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    fairness_key: str
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("message_id", "state", "fairness_key", "priority", "cost", "attempt_count", "throttle_keys", "reasons", "deliveries_ahead", "exact", "not_before", "estimated_at", "enqueued_at")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_AHEAD_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_AT_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    state: MessageState
    fairness_key: str
    priority: int
    cost: int
    attempt_count: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    reasons: _containers.RepeatedCompositeFieldContainer[WaitReason]
    deliveries_ahead: int
    exact: bool
    not_before: _timestamp_pb2.Timestamp
    estimated_at: _timestamp_pb2.Timestamp
    enqueued_at: _timestamp_pb2.Timestamp
    def __init__(self, message_id: _Optional[str] = ..., state: _Optional[_Union[MessageState, str]] = ..., fairness_key: _Optional[str] = ..., priority: _Optional[int] = ..., cost: _Optional[int] = ..., attempt_count: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., reasons: _Optional[_Iterable[_Union[WaitReason, _Mapping]]] = ..., deliveries_ahead: _Optional[int] = ..., exact: _Optional[bool] = ..., not_before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., estimated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., enqueued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WaitReason(_message.Message):
    __slots__ = ("code", "text", "until", "subject", "setting", "numbers")
    class NumbersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SETTING_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    code: WaitCause
    text: str
    until: _timestamp_pb2.Timestamp
    subject: str
    setting: str
    numbers: _containers.ScalarMap[str, float]
    def __init__(self, code: _Optional[_Union[WaitCause, str]] = ..., text: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., subject: _Optional[str] = ..., setting: _Optional[str] = ..., numbers: _Optional[_Mapping[str, float]] = ...) -> None: ...

class DryRunHookRequest(_message.Message):
    __slots__ = ("queue", "script", "headers", "payload_size", "attempts", "error", "next_messages")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NEXT_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    queue: str
    script: str
    headers: _containers.ScalarMap[str, str]
    payload_size: int
    attempts: int
    error: str
    next_messages: int
    def __init__(self, queue: _Optional[str] = ..., script: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload_size: _Optional[int] = ..., attempts: _Optional[int] = ..., error: _Optional[str] = ..., next_messages: _Optional[int] = ...) -> None: ...

class DryRunHookResponse(_message.Message):
    __slots__ = ("trials",)
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    trials: _containers.RepeatedCompositeFieldContainer[HookTrial]
    def __init__(self, trials: _Optional[_Iterable[_Union[HookTrial, _Mapping]]] = ...) -> None: ...

class HookTrial(_message.Message):
    __slots__ = ("message_id", "on_enqueue", "on_failure")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ON_ENQUEUE_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    on_enqueue: EnqueueDecision
    on_failure: FailureDecision
    def __init__(self, message_id: _Optional[str] = ..., on_enqueue: _Optional[_Union[EnqueueDecision, _Mapping]] = ..., on_failure: _Optional[_Union[FailureDecision, _Mapping]] = ...) -> None: ...

class EnqueueDecision(_message.Message):
    __slots__ = ("fairness_key", "weight", "throttle_keys", "cost", "priority", "delay_ms", "error")
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    weight: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    cost: int
    priority: int
    delay_ms: int
    error: str
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., cost: _Optional[int] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class FailureDecision(_message.Message):
    __slots__ = ("dead_letter", "delay_ms", "error")
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    dead_letter: bool
    delay_ms: int
    error: str
    def __init__(self, dead_letter: _Optional[bool] = ..., delay_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class PauseQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ResumeQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MessageFilter(_message.Message):
    __slots__ = ("headers", "fairness_key", "error", "min_age_ms", "max_age_ms", "states", "message_ids")
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MIN_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.RepeatedCompositeFieldContainer[HeaderMatch]
    fairness_key: str
    error: str
    min_age_ms: int
    max_age_ms: int
    states: _containers.RepeatedScalarFieldContainer[MessageState]
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, headers: _Optional[_Iterable[_Union[HeaderMatch, _Mapping]]] = ..., fairness_key: _Optional[str] = ..., error: _Optional[str] = ..., min_age_ms: _Optional[int] = ..., max_age_ms: _Optional[int] = ..., states: _Optional[_Iterable[_Union[MessageState, str]]] = ..., message_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class HeaderMatch(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PeekRequest(_message.Message):
    __slots__ = ("queue", "filter", "limit", "newest_first", "payload_bytes", "cursor")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    queue: str
    filter: MessageFilter
    limit: int
    newest_first: bool
    payload_bytes: int
    cursor: str
    def __init__(self, queue: _Optional[str] = ..., filter: _Optional[_Union[MessageFilter, _Mapping]] = ..., limit: _Optional[int] = ..., newest_first: _Optional[bool] = ..., payload_bytes: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class PeekResponse(_message.Message):
    __slots__ = ("messages", "cursor")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[PeekedMessage]
    cursor: str
    def __init__(self, messages: _Optional[_Iterable[_Union[PeekedMessage, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class PeekedMessage(_message.Message):
    __slots__ = ("message", "state", "until", "payload_size", "attempts")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    message: _messages_pb2.Message
    state: MessageState
    until: _timestamp_pb2.Timestamp
    payload_size: int
    attempts: _containers.RepeatedCompositeFieldContainer[_messages_pb2.FailedAttempt]
    def __init__(self, message: _Optional[_Union[_messages_pb2.Message, _Mapping]] = ..., state: _Optional[_Union[MessageState, str]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., payload_size: _Optional[int] = ..., attempts: _Optional[_Iterable[_Union[_messages_pb2.FailedAttempt, _Mapping]]] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ("dlq_queue", "count", "filter", "dry_run", "bounded", "cursor", "final")
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    count: int
    filter: MessageFilter
    dry_run: bool
    bounded: bool
    cursor: str
    final: bool
    def __init__(self, dlq_queue: _Optional[str] = ..., count: _Optional[int] = ..., filter: _Optional[_Union[MessageFilter, _Mapping]] = ..., dry_run: _Optional[bool] = ..., bounded: _Optional[bool] = ..., cursor: _Optional[str] = ..., final: _Optional[bool] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ("redriven", "cursor")
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    cursor: str
    def __init__(self, redriven: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class PurgeRequest(_message.Message):
    __slots__ = ("queue", "count", "filter", "dry_run", "bounded", "cursor", "any_queue", "final")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ANY_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    queue: str
    count: int
    filter: MessageFilter
    dry_run: bool
    bounded: bool
    cursor: str
    any_queue: bool
    final: bool
    def __init__(self, queue: _Optional[str] = ..., count: _Optional[int] = ..., filter: _Optional[_Union[MessageFilter, _Mapping]] = ..., dry_run: _Optional[bool] = ..., bounded: _Optional[bool] = ..., cursor: _Optional[str] = ..., any_queue: _Optional[bool] = ..., final: _Optional[bool] = ...) -> None: ...

class PurgeResponse(_message.Message):
    __slots__ = ("purged", "cursor")
    PURGED_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    purged: int
    cursor: str
    def __init__(self, purged: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ReadJournalRequest(_message.Message):
    __slots__ = ("positions", "last", "max_entries", "queue", "follow")
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[JournalPosition]
    last: int
    max_entries: int
    queue: str
    follow: bool
    def __init__(self, positions: _Optional[_Iterable[_Union[JournalPosition, _Mapping]]] = ..., last: _Optional[int] = ..., max_entries: _Optional[int] = ..., queue: _Optional[str] = ..., follow: _Optional[bool] = ...) -> None: ...

class JournalPosition(_message.Message):
    __slots__ = ("journal", "seq")
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    journal: int
    seq: int
    def __init__(self, journal: _Optional[int] = ..., seq: _Optional[int] = ...) -> None: ...

class ReadJournalResponse(_message.Message):
    __slots__ = ("first_available_seq", "next_seq", "position", "store", "records", "enabled", "journal")
    FIRST_AVAILABLE_SEQ_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    first_available_seq: int
    next_seq: int
    position: int
    store: int
    records: _containers.RepeatedCompositeFieldContainer[JournalRecord]
    enabled: bool
    journal: int
    def __init__(self, first_available_seq: _Optional[int] = ..., next_seq: _Optional[int] = ..., position: _Optional[int] = ..., store: _Optional[int] = ..., records: _Optional[_Iterable[_Union[JournalRecord, _Mapping]]] = ..., enabled: _Optional[bool] = ..., journal: _Optional[int] = ...) -> None: ...

class JournalRecord(_message.Message):
    __slots__ = ("at_ns", "lanes", "sections")
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    at_ns: int
    lanes: _containers.RepeatedCompositeFieldContainer[JournalLane]
    sections: _containers.RepeatedCompositeFieldContainer[JournalSection]
    def __init__(self, at_ns: _Optional[int] = ..., lanes: _Optional[_Iterable[_Union[JournalLane, _Mapping]]] = ..., sections: _Optional[_Iterable[_Union[JournalSection, _Mapping]]] = ...) -> None: ...

class JournalLane(_message.Message):
    __slots__ = ("queue", "fairness_key", "priority", "weight")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    priority: int
    weight: int
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., priority: _Optional[int] = ..., weight: _Optional[int] = ...) -> None: ...

class JournalSection(_message.Message):
    __slots__ = ("kind", "first_seq", "rows", "lanes", "message_seqs", "attempts", "sizes", "costs", "until_ns", "counts", "causes", "targets", "notes", "throttled_ns")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_SEQS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_NS_FIELD_NUMBER: _ClassVar[int]
    kind: JournalKind
    first_seq: int
    rows: int
    lanes: _containers.RepeatedScalarFieldContainer[int]
    message_seqs: _containers.RepeatedScalarFieldContainer[int]
    attempts: _containers.RepeatedScalarFieldContainer[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    costs: _containers.RepeatedScalarFieldContainer[int]
    until_ns: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    causes: _containers.RepeatedScalarFieldContainer[JournalKind]
    targets: _containers.RepeatedScalarFieldContainer[int]
    notes: _containers.RepeatedScalarFieldContainer[str]
    throttled_ns: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[_Union[JournalKind, str]] = ..., first_seq: _Optional[int] = ..., rows: _Optional[int] = ..., lanes: _Optional[_Iterable[int]] = ..., message_seqs: _Optional[_Iterable[int]] = ..., attempts: _Optional[_Iterable[int]] = ..., sizes: _Optional[_Iterable[int]] = ..., costs: _Optional[_Iterable[int]] = ..., until_ns: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ..., causes: _Optional[_Iterable[_Union[JournalKind, str]]] = ..., targets: _Optional[_Iterable[int]] = ..., notes: _Optional[_Iterable[str]] = ..., throttled_ns: _Optional[_Iterable[int]] = ...) -> None: ...

class ReadAuditRequest(_message.Message):
    __slots__ = ("from_seq", "last", "limit", "queue", "who", "action", "resource", "since_ns", "until_ns", "refused", "wait_ms")
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    from_seq: int
    last: int
    limit: int
    queue: str
    who: str
    action: str
    resource: str
    since_ns: int
    until_ns: int
    refused: bool
    wait_ms: int
    def __init__(self, from_seq: _Optional[int] = ..., last: _Optional[int] = ..., limit: _Optional[int] = ..., queue: _Optional[str] = ..., who: _Optional[str] = ..., action: _Optional[str] = ..., resource: _Optional[str] = ..., since_ns: _Optional[int] = ..., until_ns: _Optional[int] = ..., refused: _Optional[bool] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class ReadAuditResponse(_message.Message):
    __slots__ = ("entries", "position", "next_seq", "first_available_seq")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    FIRST_AVAILABLE_SEQ_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    position: int
    next_seq: int
    first_available_seq: int
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., position: _Optional[int] = ..., next_seq: _Optional[int] = ..., first_available_seq: _Optional[int] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("seq", "at_ns", "action", "principal", "key_id", "peer", "resource_kind", "resource", "outcome", "stage", "count", "times", "began_seq", "changes")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_KIND_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    BEGAN_SEQ_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at_ns: int
    action: str
    principal: str
    key_id: str
    peer: str
    resource_kind: AuditResource
    resource: str
    outcome: str
    stage: AuditStage
    count: int
    times: int
    began_seq: int
    changes: _containers.RepeatedCompositeFieldContainer[AuditChange]
    def __init__(self, seq: _Optional[int] = ..., at_ns: _Optional[int] = ..., action: _Optional[str] = ..., principal: _Optional[str] = ..., key_id: _Optional[str] = ..., peer: _Optional[str] = ..., resource_kind: _Optional[_Union[AuditResource, str]] = ..., resource: _Optional[str] = ..., outcome: _Optional[str] = ..., stage: _Optional[_Union[AuditStage, str]] = ..., count: _Optional[int] = ..., times: _Optional[int] = ..., began_seq: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[AuditChange, _Mapping]]] = ...) -> None: ...

class AuditChange(_message.Message):
    __slots__ = ("name", "before", "after")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    before: str
    after: str
    def __init__(self, name: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class DescribeServerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeServerResponse(_message.Message):
    __slots__ = ("version", "now", "listen_addr", "http_listen_addr", "insecure", "protected_mode", "has_keys", "tls", "store", "journal_enabled", "runs_as_root")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    LISTEN_ADDR_FIELD_NUMBER: _ClassVar[int]
    HTTP_LISTEN_ADDR_FIELD_NUMBER: _ClassVar[int]
    INSECURE_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_MODE_FIELD_NUMBER: _ClassVar[int]
    HAS_KEYS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_ENABLED_FIELD_NUMBER: _ClassVar[int]
    RUNS_AS_ROOT_FIELD_NUMBER: _ClassVar[int]
    version: str
    now: _timestamp_pb2.Timestamp
    listen_addr: str
    http_listen_addr: str
    insecure: bool
    protected_mode: bool
    has_keys: bool
    tls: TlsInfo
    store: StoreInfo
    journal_enabled: bool
    runs_as_root: bool
    def __init__(self, version: _Optional[str] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., listen_addr: _Optional[str] = ..., http_listen_addr: _Optional[str] = ..., insecure: _Optional[bool] = ..., protected_mode: _Optional[bool] = ..., has_keys: _Optional[bool] = ..., tls: _Optional[_Union[TlsInfo, _Mapping]] = ..., store: _Optional[_Union[StoreInfo, _Mapping]] = ..., journal_enabled: _Optional[bool] = ..., runs_as_root: _Optional[bool] = ...) -> None: ...

class TlsInfo(_message.Message):
    __slots__ = ("client_auth", "min_version", "certificate_error", "certificate_expires_at", "certificate_names", "key_file", "key_file_mode")
    CLIENT_AUTH_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_ERROR_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NAMES_FIELD_NUMBER: _ClassVar[int]
    KEY_FILE_FIELD_NUMBER: _ClassVar[int]
    KEY_FILE_MODE_FIELD_NUMBER: _ClassVar[int]
    client_auth: ClientAuth
    min_version: TlsVersion
    certificate_error: str
    certificate_expires_at: _timestamp_pb2.Timestamp
    certificate_names: _containers.RepeatedScalarFieldContainer[str]
    key_file: str
    key_file_mode: int
    def __init__(self, client_auth: _Optional[_Union[ClientAuth, str]] = ..., min_version: _Optional[_Union[TlsVersion, str]] = ..., certificate_error: _Optional[str] = ..., certificate_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., certificate_names: _Optional[_Iterable[str]] = ..., key_file: _Optional[str] = ..., key_file_mode: _Optional[int] = ...) -> None: ...

class StoreInfo(_message.Message):
    __slots__ = ("data_dir", "data_dir_mode", "durability", "free_bytes", "min_free_bytes")
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_MODE_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    data_dir: str
    data_dir_mode: int
    durability: Durability
    free_bytes: int
    min_free_bytes: int
    def __init__(self, data_dir: _Optional[str] = ..., data_dir_mode: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., free_bytes: _Optional[int] = ..., min_free_bytes: _Optional[int] = ...) -> None: ...
