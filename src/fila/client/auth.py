"""API keys, certificate rules, principals and roles: `client.auth`. All but `who_am_i` needs the permission `admin`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp

from fila.client.admin_service import moment
from fila.client.arguments import chosen, known_names, made, several
from fila.client.connection import Connection
from fila.client.enums import name_of
from fila.client.loop_thread import LoopThread
from fila.v1 import auth_pb2 as pb

if TYPE_CHECKING:
    from fila.v1.auth_pb2_grpc import FilaAuthAsyncStub


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the caller is. Without a principal: nobody in particular, and everything is allowed."""

    principal: str
    key_id: str
    roles: tuple[str, ...]
    grants: tuple[str, ...]
    recognised_by: str
    """"key", "certificate" or "token"; empty without a principal."""
    credential: str
    """The id of the API key or of the certificate rule; of a token, the id of the key that has signed it."""
    expires_at: datetime | None
    """When the key, the certificate or the token ends."""
    certificate_names: tuple[str, ...]
    """Names in the client certificate of the connection, as rules see them: "uri:spiffe://acme/billing"."""


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its secret."""

    id: str
    principal: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """To a minute."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. `token` is what a client sends; the broker cannot show it again."""

    info: KeyInfo
    token: str

    def __repr__(self) -> str:
        return f"NewKey(info={self.info!r}, token=...)"


@dataclass(frozen=True, slots=True)
class CertificateRuleInfo:
    """Client certificates whose field ("dn", "cn", "dns", "uri", "email") matches the pattern are the principal's."""

    id: str
    field: str
    pattern: str
    principal: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PrincipalInfo:
    """Somebody who calls, with roles such as "producer:orders.**"."""

    name: str
    roles: tuple[str, ...]
    created_at: datetime
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RoleInfo:
    """A named set of grants such as "enqueue=queue:orders.**"."""

    name: str
    grants: tuple[str, ...]
    built_in: bool


class Auth:
    """The calls to FilaAuth, as `AsyncClient.auth` has them. All of them raise FilaError."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call
        self._stub: FilaAuthAsyncStub = connection.methods(pb, "FilaAuth")

    async def who_am_i(self) -> Identity:
        """Who the broker takes the caller for, and what it may do."""
        response = await self._call(self._stub.WhoAmI, pb.WhoAmIRequest())
        return Identity(
            response.principal,
            response.key_id,
            tuple(response.roles),
            tuple(response.grants),
            name_of(pb.CredentialKind, response.recognised_by),
            response.credential,
            _optional(response, "expires_at", response.expires_at),
            tuple(response.certificate_names),
        )

    async def create_key(self, principal: str, roles: Iterable[str] = (), *, ttl_ms: int = 0) -> NewKey:
        """Create a key of a principal, which is created with these roles if it does not exist.

        With `ttl_ms` the key expires that long from now. Raises FailedPreconditionError when the principal exists with
        other roles, or when the first key of all could not administer.
        """
        request = made(pb.CreateKeyRequest, principal=principal, roles=several("roles", roles), ttl_ms=ttl_ms)
        response = await self._call(self._stub.CreateKey, request)
        return NewKey(_key(response.key), response.token)

    async def list_keys(self, principal: str = "") -> list[KeyInfo]:
        """All keys, or those of one principal, ordered by id."""
        response = await self._call(self._stub.ListKeys, made(pb.ListKeysRequest, principal=principal))
        return [_key(key) for key in response.keys]

    async def rotate_key(self, key_id: str, *, overlap_ms: int = 3_600_000, ttl_ms: int = 0) -> NewKey:
        """Create another key of the same principal. The old key stays valid for `overlap_ms`."""
        request = made(pb.RotateKeyRequest, key_id=key_id, overlap_ms=overlap_ms, ttl_ms=ttl_ms)
        response = await self._call(self._stub.RotateKey, request)
        return NewKey(_key(response.key), response.token)

    async def revoke_key(self, key_id: str) -> None:
        """Remove a key at once; its open calls end. Raises FailedPreconditionError for the last admin key."""
        await self._call(self._stub.RevokeKey, made(pb.RevokeKeyRequest, key_id=key_id))

    async def add_certificate_rule(
        self, principal: str, field: str, pattern: str, *, roles: Iterable[str] = (), first: bool = False
    ) -> CertificateRuleInfo:
        """Map client certificates to a principal, which is created with these roles if it does not exist.

        `field` is "dn", "cn", "dns", "uri" or "email". The first rule that matches decides; with `first`, this one is
        tried before all others. Raises FailedPreconditionError while there is no admin key.
        """
        request = made(
            pb.AddCertificateRuleRequest,
            principal=principal,
            roles=several("roles", roles),
            field=chosen("field", pb.CertificateField, field),
            pattern=pattern,
            first=first,
        )
        return _rule((await self._call(self._stub.AddCertificateRule, request)).rule)

    async def list_certificate_rules(self) -> list[CertificateRuleInfo]:
        """All rules, in the order in which they are tried."""
        response = await self._call(self._stub.ListCertificateRules, pb.ListCertificateRulesRequest())
        return [_rule(rule) for rule in response.rules]

    async def remove_certificate_rule(self, rule_id: str) -> None:
        """Remove a rule at once; open calls that were recognised by it end."""
        await self._call(self._stub.RemoveCertificateRule, made(pb.RemoveCertificateRuleRequest, id=rule_id))

    async def set_principal(self, name: str, roles: Iterable[str], *, limits: Mapping[str, int] | None = None) -> None:
        """Set the roles and limits of a principal, which is created if it does not exist."""
        known_names("limit", limits or {}, [field.name for field in pb.PrincipalLimits.DESCRIPTOR.fields])
        kept = made(pb.PrincipalLimits, **(limits or {}))
        request = made(pb.SetPrincipalRequest, name=name, roles=several("roles", roles), limits=kept)
        await self._call(self._stub.SetPrincipal, request)

    async def delete_principal(self, name: str) -> int:
        """Remove a principal with its certificate rules, and return how many keys went with it."""
        response = await self._call(self._stub.DeletePrincipal, made(pb.DeletePrincipalRequest, name=name))
        return response.keys_revoked

    async def list_principals(self) -> list[PrincipalInfo]:
        response = await self._call(self._stub.ListPrincipals, pb.ListPrincipalsRequest())
        return [
            PrincipalInfo(each.name, tuple(each.roles), moment(each.created_at), _limits(each.limits))
            for each in response.principals
        ]

    async def set_role(self, name: str, grants: Iterable[str]) -> None:
        """Set the grants of a role, such as "enqueue=orders.**", which is created if it does not exist."""
        await self._call(self._stub.SetRole, made(pb.SetRoleRequest, name=name, grants=several("grants", grants)))

    async def delete_role(self, name: str) -> None:
        """Raises FailedPreconditionError for a role that a principal has."""
        await self._call(self._stub.DeleteRole, made(pb.DeleteRoleRequest, name=name))

    async def list_roles(self) -> list[RoleInfo]:
        """All roles, the built-in ones first."""
        response = await self._call(self._stub.ListRoles, pb.ListRolesRequest())
        return [RoleInfo(role.name, tuple(role.grants), role.built_in) for role in response.roles]


class BlockingAuth:
    """The methods of `Auth` for programs that block, as `Client.auth` has them."""

    def __init__(self, thread: LoopThread, auth: Auth) -> None:
        self._thread = thread
        self._auth = auth

    def who_am_i(self) -> Identity:
        """Who the broker takes the caller for, and what it may do."""
        return self._thread.run(self._auth.who_am_i())

    def create_key(self, principal: str, roles: Iterable[str] = (), *, ttl_ms: int = 0) -> NewKey:
        """Create a key of a principal, which is created with these roles if it does not exist."""
        return self._thread.run(self._auth.create_key(principal, roles, ttl_ms=ttl_ms))

    def list_keys(self, principal: str = "") -> list[KeyInfo]:
        """All keys, or those of one principal, ordered by id."""
        return self._thread.run(self._auth.list_keys(principal))

    def rotate_key(self, key_id: str, *, overlap_ms: int = 3_600_000, ttl_ms: int = 0) -> NewKey:
        """Create another key of the same principal. The old key stays valid for `overlap_ms`."""
        return self._thread.run(self._auth.rotate_key(key_id, overlap_ms=overlap_ms, ttl_ms=ttl_ms))

    def revoke_key(self, key_id: str) -> None:
        """Remove a key at once; its open calls end. Raises FailedPreconditionError for the last admin key."""
        self._thread.run(self._auth.revoke_key(key_id))

    def add_certificate_rule(
        self, principal: str, field: str, pattern: str, *, roles: Iterable[str] = (), first: bool = False
    ) -> CertificateRuleInfo:
        """Map client certificates to a principal, which is created with these roles if it does not exist."""
        return self._thread.run(self._auth.add_certificate_rule(principal, field, pattern, roles=roles, first=first))

    def list_certificate_rules(self) -> list[CertificateRuleInfo]:
        """All rules, in the order in which they are tried."""
        return self._thread.run(self._auth.list_certificate_rules())

    def remove_certificate_rule(self, rule_id: str) -> None:
        """Remove a rule at once; open calls that were recognised by it end."""
        self._thread.run(self._auth.remove_certificate_rule(rule_id))

    def set_principal(self, name: str, roles: Iterable[str], *, limits: Mapping[str, int] | None = None) -> None:
        """Set the roles and limits of a principal, which is created if it does not exist."""
        self._thread.run(self._auth.set_principal(name, roles, limits=limits))

    def delete_principal(self, name: str) -> int:
        """Remove a principal with its certificate rules, and return how many keys went with it."""
        return self._thread.run(self._auth.delete_principal(name))

    def list_principals(self) -> list[PrincipalInfo]:
        return self._thread.run(self._auth.list_principals())

    def set_role(self, name: str, grants: Iterable[str]) -> None:
        """Set the grants of a role, such as "enqueue=orders.**", which is created if it does not exist."""
        self._thread.run(self._auth.set_role(name, grants))

    def delete_role(self, name: str) -> None:
        """Raises FailedPreconditionError for a role that a principal has."""
        self._thread.run(self._auth.delete_role(name))

    def list_roles(self) -> list[RoleInfo]:
        """All roles, the built-in ones first."""
        return self._thread.run(self._auth.list_roles())


def _rule(rule: pb.CertificateRule) -> CertificateRuleInfo:
    return CertificateRuleInfo(
        rule.id, name_of(pb.CertificateField, rule.field), rule.pattern, rule.principal, moment(rule.created_at)
    )


def _key(key: pb.KeyInfo) -> KeyInfo:
    return KeyInfo(
        key.id,
        key.principal,
        moment(key.created_at),
        _optional(key, "expires_at", key.expires_at),
        _optional(key, "last_used_at", key.last_used_at),
    )


def _optional(key: pb.KeyInfo | pb.WhoAmIResponse, name: str, stamp: Timestamp) -> datetime | None:
    return moment(stamp) if key.HasField(name) else None


def _limits(limits: pb.PrincipalLimits) -> dict[str, int]:
    return {field.name: number for field, number in limits.ListFields()}
