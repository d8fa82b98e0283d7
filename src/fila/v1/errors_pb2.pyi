from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_KIND_UNSPECIFIED: _ClassVar[ErrorKind]
    ERROR_KIND_INTERNAL: _ClassVar[ErrorKind]
    ERROR_KIND_INVALID_ARGUMENT: _ClassVar[ErrorKind]
    ERROR_KIND_PAYLOAD_TOO_LARGE: _ClassVar[ErrorKind]
    ERROR_KIND_TOO_LARGE: _ClassVar[ErrorKind]
    ERROR_KIND_LIMIT_REACHED: _ClassVar[ErrorKind]
    ERROR_KIND_QUEUE_NOT_FOUND: _ClassVar[ErrorKind]
    ERROR_KIND_QUEUE_ALREADY_EXISTS: _ClassVar[ErrorKind]
    ERROR_KIND_MESSAGE_NOT_FOUND: _ClassVar[ErrorKind]
    ERROR_KIND_LEASE_ENDED: _ClassVar[ErrorKind]
    ERROR_KIND_MESSAGE_GONE: _ClassVar[ErrorKind]
    ERROR_KIND_CONFIG_NOT_FOUND: _ClassVar[ErrorKind]
    ERROR_KIND_UNAUTHENTICATED: _ClassVar[ErrorKind]
    ERROR_KIND_KEY_ENDED: _ClassVar[ErrorKind]
    ERROR_KIND_PERMISSION_DENIED: _ClassVar[ErrorKind]
    ERROR_KIND_FAILED_PRECONDITION: _ClassVar[ErrorKind]
    ERROR_KIND_CLAIM_LOST: _ClassVar[ErrorKind]
    ERROR_KIND_FENCED: _ClassVar[ErrorKind]
    ERROR_KIND_TOO_FAR_AHEAD: _ClassVar[ErrorKind]
    ERROR_KIND_NOT_STAGED: _ClassVar[ErrorKind]
    ERROR_KIND_STALE_SEQUENCE: _ClassVar[ErrorKind]
    ERROR_KIND_SEQUENCE_REUSED: _ClassVar[ErrorKind]
    ERROR_KIND_PRODUCER_FENCED: _ClassVar[ErrorKind]
    ERROR_KIND_OVERLOADED: _ClassVar[ErrorKind]
    ERROR_KIND_QUOTA_EXCEEDED: _ClassVar[ErrorKind]
    ERROR_KIND_QUEUE_FULL: _ClassVar[ErrorKind]
    ERROR_KIND_SHUTTING_DOWN: _ClassVar[ErrorKind]
    ERROR_KIND_STORE_BUSY: _ClassVar[ErrorKind]
    ERROR_KIND_STORE_FULL: _ClassVar[ErrorKind]
    ERROR_KIND_STORE_FAILED: _ClassVar[ErrorKind]
    ERROR_KIND_NOT_OWNER: _ClassVar[ErrorKind]
    ERROR_KIND_UNSUPPORTED: _ClassVar[ErrorKind]
    ERROR_KIND_PROVIDER_AWAY: _ClassVar[ErrorKind]
ERROR_KIND_UNSPECIFIED: ErrorKind
ERROR_KIND_INTERNAL: ErrorKind
ERROR_KIND_INVALID_ARGUMENT: ErrorKind
ERROR_KIND_PAYLOAD_TOO_LARGE: ErrorKind
ERROR_KIND_TOO_LARGE: ErrorKind
ERROR_KIND_LIMIT_REACHED: ErrorKind
ERROR_KIND_QUEUE_NOT_FOUND: ErrorKind
ERROR_KIND_QUEUE_ALREADY_EXISTS: ErrorKind
ERROR_KIND_MESSAGE_NOT_FOUND: ErrorKind
ERROR_KIND_LEASE_ENDED: ErrorKind
ERROR_KIND_MESSAGE_GONE: ErrorKind
ERROR_KIND_CONFIG_NOT_FOUND: ErrorKind
ERROR_KIND_UNAUTHENTICATED: ErrorKind
ERROR_KIND_KEY_ENDED: ErrorKind
ERROR_KIND_PERMISSION_DENIED: ErrorKind
ERROR_KIND_FAILED_PRECONDITION: ErrorKind
ERROR_KIND_CLAIM_LOST: ErrorKind
ERROR_KIND_FENCED: ErrorKind
ERROR_KIND_TOO_FAR_AHEAD: ErrorKind
ERROR_KIND_NOT_STAGED: ErrorKind
ERROR_KIND_STALE_SEQUENCE: ErrorKind
ERROR_KIND_SEQUENCE_REUSED: ErrorKind
ERROR_KIND_PRODUCER_FENCED: ErrorKind
ERROR_KIND_OVERLOADED: ErrorKind
ERROR_KIND_QUOTA_EXCEEDED: ErrorKind
ERROR_KIND_QUEUE_FULL: ErrorKind
ERROR_KIND_SHUTTING_DOWN: ErrorKind
ERROR_KIND_STORE_BUSY: ErrorKind
ERROR_KIND_STORE_FULL: ErrorKind
ERROR_KIND_STORE_FAILED: ErrorKind
ERROR_KIND_NOT_OWNER: ErrorKind
ERROR_KIND_UNSUPPORTED: ErrorKind
ERROR_KIND_PROVIDER_AWAY: ErrorKind

class Error(_message.Message):
    __slots__ = ("code", "message", "kind", "retryable", "retry_after_ms", "owner")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    kind: ErrorKind
    retryable: bool
    retry_after_ms: int
    owner: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., kind: _Optional[_Union[ErrorKind, str]] = ..., retryable: _Optional[bool] = ..., retry_after_ms: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...
