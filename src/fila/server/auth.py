"""FilaAuth: keys, principals and roles. Each handler decodes, has the broker change its records, encodes."""

from dataclasses import replace
from typing import Any, Final

from fila.auth.allowance import LIMITS
from fila.auth.keys import Key, new_key
from fila.auth.records import Assignment, LastUse, Principal, Role
from fila.auth.registry import Change, Put, Registry, Remove
from fila.auth.rights import BUILT_IN, Grant
from fila.broker.broker import Broker
from fila.core.errors import InvalidArgument, NotNow, PermissionDenied, quoted
from fila.core.ids import NS_PER_MS
from fila.server.access import Gate, is_loopback
from fila.server.timestamps import timestamp
from fila.server.types import Method, Methods, ServerCall
from fila.v1 import auth_pb2 as pb

MAX_REQUEST_BYTES: Final = 64 << 10
MAX_TTL_MS: Final = 100 * 365 * 86_400_000


class FilaAuth:
    """The handlers of the contract's FilaAuth."""

    def __init__(self, broker: Broker, gate: Gate) -> None:
        self._broker = broker
        self._gate = gate

    @property
    def _registry(self) -> Registry:
        return self._broker.state.access

    async def who_am_i(self, _: pb.WhoAmIRequest, call: ServerCall) -> pb.WhoAmIResponse:
        access = self._gate.of(call)
        principal = self._registry.principals.get(access.principal)
        if access.key is None or principal is None:
            return pb.WhoAmIResponse()
        return pb.WhoAmIResponse(
            principal=principal.name,
            key_id=access.key.id,
            roles=[str(role) for role in principal.roles],
            grants=[
                f"{grant} within {role.scope}" if role.scope else str(grant)
                for role in principal.roles
                for grant in self._registry.grants(role.role)
            ],
        )

    async def create_key(self, request: pb.CreateKeyRequest, call: ServerCall) -> pb.CreateKeyResponse:
        roles, changes = _assignments(request.roles), list[Change]()
        known = self._registry.principals.get(request.principal)
        if known is None:
            changes.append(Put(Principal(request.principal, roles, self._broker.now())))
        elif roles and roles != known.roles:
            raise NotNow(f"principal {quoted(known.name)} has other roles: change them with SetPrincipal")
        key, token = self._new_key(request.principal, request.ttl_ms)
        await self._change(call, [*changes, Put(key)])
        return pb.CreateKeyResponse(key=self._write_key(key), token=token)

    async def list_keys(self, request: pb.ListKeysRequest, _: ServerCall) -> pb.ListKeysResponse:
        keys = [key for key in self._registry.keys.values() if request.principal in {"", key.principal}]
        return pb.ListKeysResponse(keys=[self._write_key(key) for key in sorted(keys, key=lambda key: key.id)])

    async def rotate_key(self, request: pb.RotateKeyRequest, call: ServerCall) -> pb.RotateKeyResponse:
        old = self._find_key(request.key_id)
        key, token = self._new_key(old.principal, request.ttl_ms)
        ends = self._broker.now() + min(request.overlap_ms, MAX_TTL_MS) * NS_PER_MS
        ending = replace(old, expires_at=min(ends, old.expires_at or ends))
        await self._change(call, [Put(key), Put(ending)])
        return pb.RotateKeyResponse(key=self._write_key(key), token=token)

    async def revoke_key(self, request: pb.RevokeKeyRequest, call: ServerCall) -> pb.RevokeKeyResponse:
        key = self._find_key(request.key_id)
        await self._change(call, _removal(key))
        return pb.RevokeKeyResponse()

    async def set_principal(self, request: pb.SetPrincipalRequest, call: ServerCall) -> pb.SetPrincipalResponse:
        unknown = set(request.limits) - set(LIMITS)
        if unknown:
            raise InvalidArgument(f"unknown limit {quoted(min(unknown))}: valid ones are {', '.join(LIMITS)}")
        if not all(0 < number < 1 << 53 for number in request.limits.values()):
            raise InvalidArgument("a limit must be a number from 1 to 2**53")
        known = self._registry.principals.get(request.name)
        made = known.created_at if known is not None else self._broker.now()
        principal = Principal(request.name, _assignments(request.roles), made, dict(request.limits))
        await self._change(call, [Put(principal)])
        return pb.SetPrincipalResponse()

    async def delete_principal(
        self, request: pb.DeletePrincipalRequest, call: ServerCall
    ) -> pb.DeletePrincipalResponse:
        if request.name not in self._registry.principals:
            raise InvalidArgument(f"principal {quoted(request.name)} does not exist")
        keys = [key for key in self._registry.keys.values() if key.principal == request.name]
        changes = [change for key in keys for change in _removal(key)]
        await self._change(call, [*changes, Remove(Principal, request.name)])
        return pb.DeletePrincipalResponse(keys_revoked=len(keys))

    async def list_principals(self, _: pb.ListPrincipalsRequest, __: ServerCall) -> pb.ListPrincipalsResponse:
        principals = sorted(self._registry.principals.values(), key=lambda principal: principal.name)
        return pb.ListPrincipalsResponse(
            principals=[
                pb.PrincipalInfo(
                    name=principal.name,
                    roles=[str(role) for role in principal.roles],
                    created_at=timestamp(principal.created_at),
                    limits=principal.limits,
                )
                for principal in principals
            ]
        )

    async def set_role(self, request: pb.SetRoleRequest, call: ServerCall) -> pb.SetRoleResponse:
        try:
            role = Role(request.name, tuple(map(Grant.parse, request.grants)))
        except ValueError as cause:
            raise InvalidArgument(str(cause)) from cause
        await self._change(call, [Put(role)])
        return pb.SetRoleResponse()

    async def delete_role(self, request: pb.DeleteRoleRequest, call: ServerCall) -> pb.DeleteRoleResponse:
        if request.name not in self._registry.roles:
            raise InvalidArgument(f"role {quoted(request.name)} does not exist, or is built in")
        for principal in self._registry.principals.values():
            if any(assigned.role == request.name for assigned in principal.roles):
                raise NotNow(f"principal {quoted(principal.name)} has the role {quoted(request.name)}")
        await self._change(call, [Remove(Role, request.name)])
        return pb.DeleteRoleResponse()

    async def list_roles(self, _: pb.ListRolesRequest, __: ServerCall) -> pb.ListRolesResponse:
        names = [*BUILT_IN, *sorted(self._registry.roles)]
        return pb.ListRolesResponse(
            roles=[
                pb.RoleInfo(
                    name=name, grants=[str(grant) for grant in self._registry.grants(name)], built_in=name in BUILT_IN
                )
                for name in names
            ]
        )

    async def _change(self, call: ServerCall, changes: list[Change]) -> None:
        """Have records changed."""
        if not self._registry.enforced and not is_loopback(call.peer()):
            raise PermissionDenied("before there is a key, rights can only be changed on the server's own machine")
        access = self._gate.of(call)
        access.changing = True
        await self._broker.change_access(changes, access.origin)

    def _new_key(self, principal: str, ttl_ms: int) -> tuple[Key, str]:
        if ttl_ms > MAX_TTL_MS:
            raise InvalidArgument("ttl_ms must not exceed a hundred years")
        now = self._broker.now()
        key, token = new_key(principal, now, now + ttl_ms * NS_PER_MS if ttl_ms else 0)
        while key.id in self._registry.keys:
            key, token = new_key(principal, now, key.expires_at)
        return key, token

    def _find_key(self, key_id: str) -> Key:
        key = self._registry.keys.get(key_id)
        if key is None:
            raise InvalidArgument(f"key {quoted(key_id)} does not exist")
        return key

    def _write_key(self, key: Key) -> pb.KeyInfo:
        info = pb.KeyInfo(id=key.id, principal=key.principal, created_at=timestamp(key.created_at))
        if key.expires_at:
            info.expires_at.CopyFrom(timestamp(key.expires_at))
        used = self._gate.last_use(key.id)
        if used:
            info.last_used_at.CopyFrom(timestamp(used))
        return info


def _assignments(texts: Any) -> tuple[Assignment, ...]:
    try:
        return tuple(map(Assignment.parse, texts))
    except ValueError as cause:
        raise InvalidArgument(str(cause)) from cause


def _removal(key: Key) -> list[Change]:
    return [Remove(Key, key.id), Remove(LastUse, key.id)]


def methods(auth: FilaAuth) -> Methods:
    """The service, by the names of its methods."""
    methods: dict[str, tuple[Any, Any]] = {
        "WhoAmI": (auth.who_am_i, pb.WhoAmIRequest),
        "CreateKey": (auth.create_key, pb.CreateKeyRequest),
        "ListKeys": (auth.list_keys, pb.ListKeysRequest),
        "RotateKey": (auth.rotate_key, pb.RotateKeyRequest),
        "RevokeKey": (auth.revoke_key, pb.RevokeKeyRequest),
        "SetPrincipal": (auth.set_principal, pb.SetPrincipalRequest),
        "DeletePrincipal": (auth.delete_principal, pb.DeletePrincipalRequest),
        "ListPrincipals": (auth.list_principals, pb.ListPrincipalsRequest),
        "SetRole": (auth.set_role, pb.SetRoleRequest),
        "DeleteRole": (auth.delete_role, pb.DeleteRoleRequest),
        "ListRoles": (auth.list_roles, pb.ListRolesRequest),
    }
    return {
        name: Method(
            method,
            request.FromString,
            lambda response: response.SerializeToString(),
            max_request_bytes=MAX_REQUEST_BYTES,
            large=name.startswith("List"),
        )
        for name, (method, request) in methods.items()
    }
