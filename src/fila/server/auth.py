"""FilaAuth: keys, certificate rules, principals and roles. Each handler decodes, has records changed, encodes."""

from dataclasses import replace
from typing import Any, Final

from fila.auth.callers import Caller, How
from fila.auth.certificates import FIELDS, CertificateRule
from fila.auth.keys import Key, new_id, new_key
from fila.auth.records import Assignment, LastUse, Principal, Role
from fila.auth.registry import Change, Put, Registry, Remove
from fila.auth.rights import BUILT_IN, Grant
from fila.broker.broker import Broker
from fila.core.errors import InvalidArgument, NotNow, PermissionDenied, quoted
from fila.core.ids import NS_PER_MS
from fila.server.access import Gate, is_loopback
from fila.server.enums import number_of, word_of
from fila.server.passing import was_passed_on
from fila.server.recognition import names_of
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
        names = () if call.peer_certificate is None else names_of(call.peer_certificate)
        shown = [f"{field}:{name}" for field, name in names]
        caller = self._gate.of(call).caller
        if caller is None:
            return pb.WhoAmIResponse(certificate_names=shown)
        known = self._registry.principals.get(caller.principal)
        roles = (*(() if known is None else known.roles), *caller.roles)
        ends = self._end_of(caller)
        return pb.WhoAmIResponse(
            principal=caller.principal,
            key_id=caller.credential if caller.how is How.KEY else "",
            roles=[str(role) for role in roles],
            grants=[
                f"{grant} within {role.scope}" if role.scope else str(grant)
                for role in roles
                for grant in self._registry.grants(role.role)
            ],
            recognised_by=number_of(pb.CredentialKind, caller.how),
            credential=caller.credential,
            expires_at=timestamp(ends) if ends else None,
            certificate_names=shown,
        )

    def _end_of(self, caller: Caller) -> int:
        key = self._registry.keys.get(caller.credential) if caller.how is How.KEY else None
        return caller.expires_at if key is None else key.expires_at

    async def create_key(self, request: pb.CreateKeyRequest, call: ServerCall) -> pb.CreateKeyResponse:
        changes = self._principal(request.principal, request.roles)
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

    async def add_certificate_rule(
        self, request: pb.AddCertificateRuleRequest, call: ServerCall
    ) -> pb.AddCertificateRuleResponse:
        changes = self._principal(request.principal, request.roles)
        orders = [known.order for known in self._registry.certificates.values()] or [0]
        order = min(orders) - 1 if request.first else max(orders) + 1
        made = new_id(request.principal)
        while made in self._registry.certificates:
            made = new_id(request.principal)
        field = word_of(pb.CertificateField, request.field, FIELDS, "field")
        rule = CertificateRule(made, field, request.pattern, request.principal, order, self._broker.now())
        await self._change(call, [*changes, Put(rule)])
        return pb.AddCertificateRuleResponse(rule=_write_rule(rule))

    async def list_certificate_rules(
        self, _: pb.ListCertificateRulesRequest, __: ServerCall
    ) -> pb.ListCertificateRulesResponse:
        return pb.ListCertificateRulesResponse(rules=map(_write_rule, self._registry.certificate_rules()))

    async def remove_certificate_rule(
        self, request: pb.RemoveCertificateRuleRequest, call: ServerCall
    ) -> pb.RemoveCertificateRuleResponse:
        rule = self._registry.certificates.get(request.id)
        if rule is None:
            raise InvalidArgument(f"certificate rule {quoted(request.id)} does not exist")
        await self._change(call, [Remove(CertificateRule, rule.id)])
        return pb.RemoveCertificateRuleResponse()

    async def set_principal(self, request: pb.SetPrincipalRequest, call: ServerCall) -> pb.SetPrincipalResponse:
        limits = {field.name: number for field, number in request.limits.ListFields()}
        if not all(0 < number < 1 << 53 for number in limits.values()):
            raise InvalidArgument("a limit must be a number from 1 to 2**53")
        known = self._registry.principals.get(request.name)
        made = known.created_at if known is not None else self._broker.now()
        principal = Principal(request.name, _assignments(request.roles), made, limits)
        await self._change(call, [Put(principal)])
        return pb.SetPrincipalResponse()

    async def delete_principal(
        self, request: pb.DeletePrincipalRequest, call: ServerCall
    ) -> pb.DeletePrincipalResponse:
        if request.name not in self._registry.principals:
            raise InvalidArgument(f"principal {quoted(request.name)} does not exist")
        keys = [key for key in self._registry.keys.values() if key.principal == request.name]
        rules = [rule.id for rule in self._registry.certificates.values() if rule.principal == request.name]
        changes = [change for key in keys for change in _removal(key)]
        changes += [Remove(CertificateRule, rule) for rule in rules]
        await self._change(call, [*changes, Remove(Principal, request.name)])
        return pb.DeletePrincipalResponse(keys_revoked=len(keys), certificate_rules_removed=len(rules))

    async def list_principals(self, _: pb.ListPrincipalsRequest, __: ServerCall) -> pb.ListPrincipalsResponse:
        principals = sorted(self._registry.principals.values(), key=lambda principal: principal.name)
        return pb.ListPrincipalsResponse(
            principals=[
                pb.PrincipalInfo(
                    name=principal.name,
                    roles=[str(role) for role in principal.roles],
                    created_at=timestamp(principal.created_at),
                    limits=pb.PrincipalLimits(**principal.limits),
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
        if not self._registry.enforced:
            # Whoever calls through another member comes from anywhere, whatever machine that member is on.
            if was_passed_on(call):
                raise PermissionDenied("before there is a key, only the owner itself changes rights: ask it directly")
            if not is_loopback(call.peer()):
                raise PermissionDenied("before there is a key, rights can only be changed on the server's own machine")
        access = self._gate.of(call)
        access.changing = True
        await self._broker.change_access(changes, access.origin)

    def _principal(self, name: str, roles: Any) -> list[Change]:
        """What makes a principal that does not exist. Raises NotNow for one that exists with other roles."""
        wanted, known = _assignments(roles), self._registry.principals.get(name)
        if known is None:
            return [Put(Principal(name, wanted, self._broker.now()))]
        if wanted and wanted != known.roles:
            raise NotNow(f"principal {quoted(known.name)} has other roles: change them with SetPrincipal")
        return []

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


def _write_rule(rule: CertificateRule) -> pb.CertificateRule:
    return pb.CertificateRule(
        id=rule.id,
        field=number_of(pb.CertificateField, rule.field),
        pattern=rule.pattern,
        principal=rule.principal,
        created_at=timestamp(rule.created_at),
    )


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
        "AddCertificateRule": (auth.add_certificate_rule, pb.AddCertificateRuleRequest),
        "ListCertificateRules": (auth.list_certificate_rules, pb.ListCertificateRulesRequest),
        "RemoveCertificateRule": (auth.remove_certificate_rule, pb.RemoveCertificateRuleRequest),
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
