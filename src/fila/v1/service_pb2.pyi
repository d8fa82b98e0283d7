import datetime

from fila.v1 import errors_pb2 as _errors_pb2
from fila.v1 import messages_pb2 as _messages_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Feature(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_UNSPECIFIED: _ClassVar[Feature]
    FEATURE_CLAIMS: _ClassVar[Feature]
    FEATURE_TRANSACTIONS: _ClassVar[Feature]
    FEATURE_HOOKS: _ClassVar[Feature]
    FEATURE_JOURNAL: _ClassVar[Feature]
    FEATURE_PARTS: _ClassVar[Feature]

class ClaimState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLAIM_STATE_UNSPECIFIED: _ClassVar[ClaimState]
    CLAIM_STATE_OPEN: _ClassVar[ClaimState]
    CLAIM_STATE_EXPIRED: _ClassVar[ClaimState]
FEATURE_UNSPECIFIED: Feature
FEATURE_CLAIMS: Feature
FEATURE_TRANSACTIONS: Feature
FEATURE_HOOKS: Feature
FEATURE_JOURNAL: Feature
FEATURE_PARTS: Feature
CLAIM_STATE_UNSPECIFIED: ClaimState
CLAIM_STATE_OPEN: ClaimState
CLAIM_STATE_EXPIRED: ClaimState

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("version", "features", "limits", "memory")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    version: str
    features: _containers.RepeatedScalarFieldContainer[Feature]
    limits: Limits
    memory: Memory
    def __init__(self, version: _Optional[str] = ..., features: _Optional[_Iterable[_Union[Feature, str]]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_payload_bytes", "max_headers", "max_header_bytes", "max_name_bytes", "max_key_bytes", "max_batch_messages", "max_request_bytes", "max_response_bytes", "max_in_flight", "max_delay_ms", "max_claim_messages")
    MAX_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_HEADERS_FIELD_NUMBER: _ClassVar[int]
    MAX_HEADER_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_NAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESPONSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_CLAIM_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    max_payload_bytes: int
    max_headers: int
    max_header_bytes: int
    max_name_bytes: int
    max_key_bytes: int
    max_batch_messages: int
    max_request_bytes: int
    max_response_bytes: int
    max_in_flight: int
    max_delay_ms: int
    max_claim_messages: int
    def __init__(self, max_payload_bytes: _Optional[int] = ..., max_headers: _Optional[int] = ..., max_header_bytes: _Optional[int] = ..., max_name_bytes: _Optional[int] = ..., max_key_bytes: _Optional[int] = ..., max_batch_messages: _Optional[int] = ..., max_request_bytes: _Optional[int] = ..., max_response_bytes: _Optional[int] = ..., max_in_flight: _Optional[int] = ..., max_delay_ms: _Optional[int] = ..., max_claim_messages: _Optional[int] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("producer_batches", "producer_ms", "producers", "dedup_window_ms")
    PRODUCER_BATCHES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_MS_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    producer_batches: int
    producer_ms: int
    producers: int
    dedup_window_ms: int
    def __init__(self, producer_batches: _Optional[int] = ..., producer_ms: _Optional[int] = ..., producers: _Optional[int] = ..., dedup_window_ms: _Optional[int] = ...) -> None: ...

class GetClusterMapRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterMapResponse(_message.Message):
    __slots__ = ("map",)
    MAP_FIELD_NUMBER: _ClassVar[int]
    map: ClusterMap
    def __init__(self, map: _Optional[_Union[ClusterMap, _Mapping]] = ...) -> None: ...

class ClusterMap(_message.Message):
    __slots__ = ("version", "members", "owners", "placements", "self")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    SELF_FIELD_NUMBER: _ClassVar[int]
    version: int
    members: _containers.RepeatedCompositeFieldContainer[Member]
    owners: _containers.RepeatedScalarFieldContainer[int]
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    self: int
    def __init__(self_, version: _Optional[int] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., owners: _Optional[_Iterable[int]] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., self: _Optional[int] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("id", "address")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("queue", "shard")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    queue: str
    shard: int
    def __init__(self, queue: _Optional[str] = ..., shard: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("message_id", "duplicate")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    duplicate: bool
    def __init__(self, message_id: _Optional[str] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ("messages", "producer_id", "sequence", "queue", "producer_epoch")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[EnqueueRequest]
    producer_id: str
    sequence: int
    queue: str
    producer_epoch: int
    def __init__(self, messages: _Optional[_Iterable[_Union[EnqueueRequest, _Mapping]]] = ..., producer_id: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ("results", "sequence", "error")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EnqueueResult]
    sequence: int
    error: _errors_pb2.Error
    def __init__(self, results: _Optional[_Iterable[_Union[EnqueueResult, _Mapping]]] = ..., sequence: _Optional[int] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ...) -> None: ...

class EnqueueResult(_message.Message):
    __slots__ = ("message_id", "error", "duplicate")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    error: _errors_pb2.Error
    duplicate: bool
    def __init__(self, message_id: _Optional[str] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("queue", "max_in_flight")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_in_flight: int
    def __init__(self, queue: _Optional[str] = ..., max_in_flight: _Optional[int] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ("queue", "max_in_flight", "handed")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    HANDED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_in_flight: int
    handed: int
    def __init__(self, queue: _Optional[str] = ..., max_in_flight: _Optional[int] = ..., handed: _Optional[int] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("messages", "visibility_timeout_ms", "active_weight")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    visibility_timeout_ms: int
    active_weight: int
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., visibility_timeout_ms: _Optional[int] = ..., active_weight: _Optional[int] = ...) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ("messages", "visibility_timeout_ms", "active_weight")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    visibility_timeout_ms: int
    active_weight: int
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., visibility_timeout_ms: _Optional[int] = ..., active_weight: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("queue", "message_id", "error", "lease_id", "delay_ms", "release", "dead_letter")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    error: str
    lease_id: str
    delay_ms: int
    release: bool
    dead_letter: bool
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[str] = ..., lease_id: _Optional[str] = ..., delay_ms: _Optional[int] = ..., release: _Optional[bool] = ..., dead_letter: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("sequence", "failures", "error")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    failures: _containers.RepeatedCompositeFieldContainer[SettleFailure]
    error: _errors_pb2.Error
    def __init__(self, sequence: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[SettleFailure, _Mapping]]] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ...) -> None: ...

class SettleFailure(_message.Message):
    __slots__ = ("queue", "message_id", "error")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    error: _errors_pb2.Error
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ...) -> None: ...

class ClaimRequest(_message.Message):
    __slots__ = ("queue", "group", "after", "max_messages", "lease_ms", "epoch", "cap", "wait_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CAP_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    after: int
    max_messages: int
    lease_ms: int
    epoch: int
    cap: int
    wait_ms: int
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ..., after: _Optional[int] = ..., max_messages: _Optional[int] = ..., lease_ms: _Optional[int] = ..., epoch: _Optional[int] = ..., cap: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class ClaimResponse(_message.Message):
    __slots__ = ("claim", "ready")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    claim: ClaimInfo
    ready: int
    def __init__(self, claim: _Optional[_Union[ClaimInfo, _Mapping]] = ..., ready: _Optional[int] = ...) -> None: ...

class ClaimInfo(_message.Message):
    __slots__ = ("number", "messages", "held", "state", "made_at", "expires_at", "lease_id")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MADE_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    number: int
    messages: int
    held: int
    state: ClaimState
    made_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    lease_id: str
    def __init__(self, number: _Optional[int] = ..., messages: _Optional[int] = ..., held: _Optional[int] = ..., state: _Optional[_Union[ClaimState, str]] = ..., made_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lease_id: _Optional[str] = ...) -> None: ...

class DescribeClaimRequest(_message.Message):
    __slots__ = ("queue", "group", "number")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    number: int
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class DescribeClaimResponse(_message.Message):
    __slots__ = ("claim",)
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    claim: ClaimInfo
    def __init__(self, claim: _Optional[_Union[ClaimInfo, _Mapping]] = ...) -> None: ...

class ReadClaimRequest(_message.Message):
    __slots__ = ("queue", "group", "number", "low", "high", "bare")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    BARE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    number: int
    low: int
    high: int
    bare: bool
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ..., number: _Optional[int] = ..., low: _Optional[int] = ..., high: _Optional[int] = ..., bare: _Optional[bool] = ...) -> None: ...

class ReadClaimResponse(_message.Message):
    __slots__ = ("messages", "next", "seqs")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    SEQS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    next: int
    seqs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., next: _Optional[int] = ..., seqs: _Optional[_Iterable[int]] = ...) -> None: ...

class AckClaimsRequest(_message.Message):
    __slots__ = ("queue", "group", "upto", "epoch")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    upto: int
    epoch: int
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ..., upto: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class AckClaimsResponse(_message.Message):
    __slots__ = ("messages", "expired")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    messages: int
    expired: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, messages: _Optional[int] = ..., expired: _Optional[_Iterable[int]] = ...) -> None: ...

class ExtendClaimsRequest(_message.Message):
    __slots__ = ("queue", "group", "lease_ms", "epoch")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    lease_ms: int
    epoch: int
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ..., lease_ms: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class ExtendClaimsResponse(_message.Message):
    __slots__ = ("extended", "expired")
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    extended: _containers.RepeatedScalarFieldContainer[int]
    expired: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, extended: _Optional[_Iterable[int]] = ..., expired: _Optional[_Iterable[int]] = ...) -> None: ...

class ClaimFloorRequest(_message.Message):
    __slots__ = ("queue", "group")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ...) -> None: ...

class ClaimFloorResponse(_message.Message):
    __slots__ = ("floor", "last", "epoch", "newest", "ready", "delayed")
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    floor: int
    last: int
    epoch: int
    newest: int
    ready: int
    delayed: int
    def __init__(self, floor: _Optional[int] = ..., last: _Optional[int] = ..., epoch: _Optional[int] = ..., newest: _Optional[int] = ..., ready: _Optional[int] = ..., delayed: _Optional[int] = ...) -> None: ...

class DropGroupRequest(_message.Message):
    __slots__ = ("queue", "group")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group: str
    def __init__(self, queue: _Optional[str] = ..., group: _Optional[str] = ...) -> None: ...

class DropGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadQueueRequest(_message.Message):
    __slots__ = ("queue", "low", "high", "part", "parts", "max_messages", "leased", "ready_only", "bare")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    READY_ONLY_FIELD_NUMBER: _ClassVar[int]
    BARE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    low: int
    high: int
    part: int
    parts: int
    max_messages: int
    leased: bool
    ready_only: bool
    bare: bool
    def __init__(self, queue: _Optional[str] = ..., low: _Optional[int] = ..., high: _Optional[int] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., max_messages: _Optional[int] = ..., leased: _Optional[bool] = ..., ready_only: _Optional[bool] = ..., bare: _Optional[bool] = ...) -> None: ...

class ReadQueueResponse(_message.Message):
    __slots__ = ("messages", "next", "seqs")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    SEQS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    next: int
    seqs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., next: _Optional[int] = ..., seqs: _Optional[_Iterable[int]] = ...) -> None: ...

class StageEnqueueRequest(_message.Message):
    __slots__ = ("messages", "producer", "transaction", "part", "sequence", "queue", "ttl_ms")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[EnqueueRequest]
    producer: str
    transaction: int
    part: str
    sequence: int
    queue: str
    ttl_ms: int
    def __init__(self, messages: _Optional[_Iterable[_Union[EnqueueRequest, _Mapping]]] = ..., producer: _Optional[str] = ..., transaction: _Optional[int] = ..., part: _Optional[str] = ..., sequence: _Optional[int] = ..., queue: _Optional[str] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class StageEnqueueResponse(_message.Message):
    __slots__ = ("committed",)
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    committed: bool
    def __init__(self, committed: _Optional[bool] = ...) -> None: ...

class CommitTransactionRequest(_message.Message):
    __slots__ = ("producer", "transaction", "parts")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    producer: str
    transaction: int
    parts: _containers.RepeatedCompositeFieldContainer[StagedPart]
    def __init__(self, producer: _Optional[str] = ..., transaction: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[StagedPart, _Mapping]]] = ...) -> None: ...

class StagedPart(_message.Message):
    __slots__ = ("part", "messages")
    PART_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    part: str
    messages: int
    def __init__(self, part: _Optional[str] = ..., messages: _Optional[int] = ...) -> None: ...

class CommitTransactionResponse(_message.Message):
    __slots__ = ("committed_before",)
    COMMITTED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    committed_before: bool
    def __init__(self, committed_before: _Optional[bool] = ...) -> None: ...
