import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CredentialKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CREDENTIAL_KIND_UNSPECIFIED: _ClassVar[CredentialKind]
    CREDENTIAL_KIND_KEY: _ClassVar[CredentialKind]
    CREDENTIAL_KIND_CERTIFICATE: _ClassVar[CredentialKind]
    CREDENTIAL_KIND_TOKEN: _ClassVar[CredentialKind]

class CertificateField(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CERTIFICATE_FIELD_UNSPECIFIED: _ClassVar[CertificateField]
    CERTIFICATE_FIELD_DN: _ClassVar[CertificateField]
    CERTIFICATE_FIELD_CN: _ClassVar[CertificateField]
    CERTIFICATE_FIELD_DNS: _ClassVar[CertificateField]
    CERTIFICATE_FIELD_URI: _ClassVar[CertificateField]
    CERTIFICATE_FIELD_EMAIL: _ClassVar[CertificateField]
CREDENTIAL_KIND_UNSPECIFIED: CredentialKind
CREDENTIAL_KIND_KEY: CredentialKind
CREDENTIAL_KIND_CERTIFICATE: CredentialKind
CREDENTIAL_KIND_TOKEN: CredentialKind
CERTIFICATE_FIELD_UNSPECIFIED: CertificateField
CERTIFICATE_FIELD_DN: CertificateField
CERTIFICATE_FIELD_CN: CertificateField
CERTIFICATE_FIELD_DNS: CertificateField
CERTIFICATE_FIELD_URI: CertificateField
CERTIFICATE_FIELD_EMAIL: CertificateField

class WhoAmIRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ("principal", "key_id", "roles", "grants", "recognised_by", "credential", "expires_at", "certificate_names")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    RECOGNISED_BY_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NAMES_FIELD_NUMBER: _ClassVar[int]
    principal: str
    key_id: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedScalarFieldContainer[str]
    recognised_by: CredentialKind
    credential: str
    expires_at: _timestamp_pb2.Timestamp
    certificate_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, principal: _Optional[str] = ..., key_id: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[str]] = ..., recognised_by: _Optional[_Union[CredentialKind, str]] = ..., credential: _Optional[str] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., certificate_names: _Optional[_Iterable[str]] = ...) -> None: ...

class KeyInfo(_message.Message):
    __slots__ = ("id", "principal", "created_at", "expires_at", "last_used_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    principal: str
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    last_used_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., principal: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ("principal", "roles", "ttl_ms")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    principal: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    ttl_ms: int
    def __init__(self, principal: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class CreateKeyResponse(_message.Message):
    __slots__ = ("key", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: KeyInfo
    token: str
    def __init__(self, key: _Optional[_Union[KeyInfo, _Mapping]] = ..., token: _Optional[str] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ("principal",)
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: str
    def __init__(self, principal: _Optional[str] = ...) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[KeyInfo]
    def __init__(self, keys: _Optional[_Iterable[_Union[KeyInfo, _Mapping]]] = ...) -> None: ...

class RotateKeyRequest(_message.Message):
    __slots__ = ("key_id", "overlap_ms", "ttl_ms")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_MS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    overlap_ms: int
    ttl_ms: int
    def __init__(self, key_id: _Optional[str] = ..., overlap_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class RotateKeyResponse(_message.Message):
    __slots__ = ("key", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: KeyInfo
    token: str
    def __init__(self, key: _Optional[_Union[KeyInfo, _Mapping]] = ..., token: _Optional[str] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class RevokeKeyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CertificateRule(_message.Message):
    __slots__ = ("id", "field", "pattern", "principal", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    field: CertificateField
    pattern: str
    principal: str
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., field: _Optional[_Union[CertificateField, str]] = ..., pattern: _Optional[str] = ..., principal: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AddCertificateRuleRequest(_message.Message):
    __slots__ = ("principal", "roles", "field", "pattern", "first")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    principal: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    field: CertificateField
    pattern: str
    first: bool
    def __init__(self, principal: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., field: _Optional[_Union[CertificateField, str]] = ..., pattern: _Optional[str] = ..., first: _Optional[bool] = ...) -> None: ...

class AddCertificateRuleResponse(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: CertificateRule
    def __init__(self, rule: _Optional[_Union[CertificateRule, _Mapping]] = ...) -> None: ...

class ListCertificateRulesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListCertificateRulesResponse(_message.Message):
    __slots__ = ("rules",)
    RULES_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[CertificateRule]
    def __init__(self, rules: _Optional[_Iterable[_Union[CertificateRule, _Mapping]]] = ...) -> None: ...

class RemoveCertificateRuleRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RemoveCertificateRuleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PrincipalInfo(_message.Message):
    __slots__ = ("name", "roles", "created_at", "limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    created_at: _timestamp_pb2.Timestamp
    limits: PrincipalLimits
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Union[PrincipalLimits, _Mapping]] = ...) -> None: ...

class PrincipalLimits(_message.Message):
    __slots__ = ("open_calls", "messages_per_second", "bytes_per_second", "connections", "queues", "queue_max_depth", "queue_max_bytes")
    OPEN_CALLS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    open_calls: int
    messages_per_second: int
    bytes_per_second: int
    connections: int
    queues: int
    queue_max_depth: int
    queue_max_bytes: int
    def __init__(self, open_calls: _Optional[int] = ..., messages_per_second: _Optional[int] = ..., bytes_per_second: _Optional[int] = ..., connections: _Optional[int] = ..., queues: _Optional[int] = ..., queue_max_depth: _Optional[int] = ..., queue_max_bytes: _Optional[int] = ...) -> None: ...

class SetPrincipalRequest(_message.Message):
    __slots__ = ("name", "roles", "limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    limits: PrincipalLimits
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[PrincipalLimits, _Mapping]] = ...) -> None: ...

class SetPrincipalResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeletePrincipalRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeletePrincipalResponse(_message.Message):
    __slots__ = ("keys_revoked", "certificate_rules_removed")
    KEYS_REVOKED_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_RULES_REMOVED_FIELD_NUMBER: _ClassVar[int]
    keys_revoked: int
    certificate_rules_removed: int
    def __init__(self, keys_revoked: _Optional[int] = ..., certificate_rules_removed: _Optional[int] = ...) -> None: ...

class ListPrincipalsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPrincipalsResponse(_message.Message):
    __slots__ = ("principals",)
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    principals: _containers.RepeatedCompositeFieldContainer[PrincipalInfo]
    def __init__(self, principals: _Optional[_Iterable[_Union[PrincipalInfo, _Mapping]]] = ...) -> None: ...

class RoleInfo(_message.Message):
    __slots__ = ("name", "grants", "built_in")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    BUILT_IN_FIELD_NUMBER: _ClassVar[int]
    name: str
    grants: _containers.RepeatedScalarFieldContainer[str]
    built_in: bool
    def __init__(self, name: _Optional[str] = ..., grants: _Optional[_Iterable[str]] = ..., built_in: _Optional[bool] = ...) -> None: ...

class SetRoleRequest(_message.Message):
    __slots__ = ("name", "grants")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    grants: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., grants: _Optional[_Iterable[str]] = ...) -> None: ...

class SetRoleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteRoleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteRoleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRolesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRolesResponse(_message.Message):
    __slots__ = ("roles",)
    ROLES_FIELD_NUMBER: _ClassVar[int]
    roles: _containers.RepeatedCompositeFieldContainer[RoleInfo]
    def __init__(self, roles: _Optional[_Iterable[_Union[RoleInfo, _Mapping]]] = ...) -> None: ...
