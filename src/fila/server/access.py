"""The gate: who calls, and whether they may. The one place where rights are checked (`access_table.py` says which).

A caller is looked up once a call (`recognition.py`), so a stream pays once. Rights are looked up when they are needed,
so changes apply at once. When keys or rights change, or something expires, the open calls that are not allowed any more
are ended.

While there is no key, every caller is anonymous and may do everything.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog

from fila.auth.allowance import CALLS, CONNECTIONS, Allowance
from fila.auth.callers import Caller
from fila.auth.failed_logins import FailedLogins
from fila.auth.patterns import EVERY
from fila.auth.records import LastUse
from fila.auth.registry import Put, Registry
from fila.auth.rights import Kind, Permission
from fila.broker.audit_commands import Origin
from fila.broker.broker import Broker
from fila.broker.commands import AckGroup, ChangeAccess, ExtendGroup, Failure, Incoming, Nack, RefusedMessage
from fila.core.errors import BrokerError, KeyEnded, PermissionDenied, QuotaExceeded, UnknownSigner, quoted
from fila.core.ids import NS_PER_MS
from fila.server.access_table import Need, Rule
from fila.server.connections import Connections
from fila.server.recognition import Recognition, Tokens
from fila.server.types import ServerCall
from fila.wire.certificate import PeerCertificate

USE_WRITTEN_NS: Final = 60_000 * NS_PER_MS
"""How often it is written when keys were used."""

log = structlog.get_logger(__name__)


class Access:
    """A caller, for the time of one call."""

    __slots__ = ("_gate", "_registry", "action", "caller", "changing", "ended", "needs", "on_end", "peer", "principal")

    def __init__(self, registry: Registry, caller: Caller | None, peer: str, gate: "Gate | None" = None) -> None:
        self._registry = registry
        self._gate = gate
        self.caller = caller
        self.principal = caller.principal if caller is not None else ""
        """Empty: anonymous"""
        self.peer = peer
        self.action = ""
        """The RPC by its name"""
        self.needs: tuple[Need, ...] = ()
        """What the call needs for as long as it lasts"""
        self.changing = False
        """It is the call that changes rights, which is answered though it may end its own caller's"""
        self.on_end: Callable[[BrokerError], None] | None = None
        """Ends the call, for a handler that does so itself"""
        self.ended: BrokerError | None = None
        """Why it was ended by us"""

    @property
    def restricted(self) -> bool:
        return self.caller is not None

    @property
    def origin(self) -> Origin:
        """Who it is, for the record."""
        return Origin(self.action, self.principal, "" if self.caller is None else self.caller.shown, self.peer)

    def allows(self, permission: Permission, kind: Kind, name: str) -> bool:
        caller = self.caller
        return caller is None or self._registry.rights(caller.principal, caller.roles).allow(permission, kind, name)

    def check(self, permission: Permission, kind: Kind, name: str) -> None:
        """Raises PermissionDenied. It says the same whether what is named exists or not."""
        if not self.allows(permission, kind, name):
            raise denied(self.principal, permission, kind, name)

    def require(self, needs: tuple[Need, ...]) -> None:
        """As `check`, of each of them, and for as long as the call lasts."""
        for permission, resource in needs:
            self.check(permission, *resource)
        self.needs = needs

    def screen(self, messages: list[Incoming]) -> list[Incoming]:
        """Messages of a batch, with a refusal in the place of each that the caller may not enqueue, or of all when the
        caller has sent more than it may a second.
        """
        refused = self._denied(Permission.ENQUEUE, {message.queue for message in messages})
        exceeded = self._exceeded(messages)
        if exceeded is not None:
            return [RefusedMessage(message.queue, refused.get(message.queue, exceeded)) for message in messages]
        if not refused:
            return messages
        return [
            RefusedMessage(message.queue, refused[message.queue]) if message.queue in refused else message
            for message in messages
        ]

    def screen_all(self, messages: list[Incoming]) -> None:
        """Raises PermissionDenied if the caller may not enqueue one of them, or QuotaExceeded."""
        for refusal in self._denied(Permission.ENQUEUE, {message.queue for message in messages}).values():
            raise refusal
        exceeded = self._exceeded(messages)
        if exceeded is not None:
            raise exceeded

    def screen_settle(self, acks: list[AckGroup], nacks: list[Nack], extends: list[ExtendGroup]) -> list[Failure]:
        """Take what the caller may not settle out of the lists. Returns it as failures."""
        groups: list[AckGroup | ExtendGroup] = [*acks, *extends]
        refused = self._denied(Permission.CONSUME, {settled.queue for settled in (*groups, *nacks)})
        if not refused:
            return []
        failures = [
            Failure(group.queue, message_id, refused[group.queue])
            for group in groups
            if group.queue in refused
            for message_id in group.message_ids
        ]
        failures += [
            Failure(nack.queue, nack.message_id, refused[nack.queue]) for nack in nacks if nack.queue in refused
        ]
        acks[:] = [group for group in acks if group.queue not in refused]
        nacks[:] = [nack for nack in nacks if nack.queue not in refused]
        extends[:] = [group for group in extends if group.queue not in refused]
        return failures

    def own(self, producer: str) -> str:
        """The name of a producer of transactions among those of all principals: nobody reaches another's."""
        return f"{self.principal}|{producer}" if self.principal else producer

    def _exceeded(self, messages: list[Incoming]) -> QuotaExceeded | None:
        allowance = None if self._gate is None else self._gate.allowance(self.principal)
        if allowance is None:
            return None
        limit = allowance.take(len(messages), sum([len(message.body) for message in messages]), self._now())
        return None if limit is None else exceeded(self._registry, self.principal, limit)

    def _now(self) -> int:
        assert self._gate is not None
        return self._gate.now()

    def _denied(self, permission: Permission, queues: Iterable[str]) -> dict[str, PermissionDenied]:
        refused: dict[str, PermissionDenied] = {}
        for queue in queues:  # asked for each batch: a loop costs half of a comprehension
            if not self.allows(permission, Kind.QUEUE, queue):
                refused[queue] = denied(self.principal, permission, Kind.QUEUE, queue)
        return refused


def denied(principal: str, permission: Permission, kind: Kind, name: str) -> PermissionDenied:
    what = "the server" if kind is Kind.SERVER else f"{kind} {quoted(name)}"
    return PermissionDenied(f"{quoted(principal)} lacks the permission {permission} on {what}")


def exceeded(registry: Registry, principal: str, limit: str) -> QuotaExceeded:
    return QuotaExceeded(
        f"{quoted(principal)} exceeds its limit {limit}={registry.principals[principal].limits[limit]}"
    )


def _authorization(call: ServerCall) -> list[str]:
    return call.metadata(b"authorization")


class Gate:
    """The open calls, each with its caller."""

    def __init__(self, broker: Broker, tokens: Tokens | None = None) -> None:
        self._broker = broker
        self._registry = broker.state.access
        self._registry.on_change = self._review
        self._registry.trusts_provider = tokens is not None
        self._tokens = tokens
        if tokens is not None:
            tokens.watch(self._review)
        self._open: dict[ServerCall, Access] = {}
        self._failed = FailedLogins()
        self._calls: Counter[str] = Counter()
        """Open calls of principals"""
        self._connections = Connections()
        self._allowances: dict[str, Allowance] = {}
        """Of principals that have limits and have sent something since rights were changed"""
        self.now = broker.now
        self._recognition = Recognition(self._registry, broker.now, tokens)
        self._use_written_at = broker.now()
        self._next_expiry = self._registry.next_expiry(broker.now())

    def enter(self, call: ServerCall) -> Access:
        """Who calls. Raises Unauthenticated, ProviderAway, or QuotaExceeded for too many open calls or connections."""
        caller = None
        if self._registry.enforced:
            caller = self._recognition.recognise(_authorization(call), call.peer_certificate)
            known = self._registry.principals.get(caller.principal)
            limits = {} if known is None else known.limits
            most = limits.get(CALLS)
            if most is not None and self._calls[caller.principal] >= most:
                raise exceeded(self._registry, caller.principal, CALLS)
            self._connections.enter(caller.principal, limits.get(CONNECTIONS), call)
            self._calls[caller.principal] += 1
            self._note_expiry(caller)
        access = self._open[call] = Access(self._registry, caller, call.peer(), self)
        return access

    async def enter_again(self, call: ServerCall) -> Access:
        """As `enter`, once more, after the identity provider was asked for other keys (UnknownSigner). Raises
        ProviderAway when it could not be asked.
        """
        assert self._tokens is not None
        if not await self._tokens.renewed():
            with suppress(UnknownSigner):
                return self.enter(call)
            await self._tokens.renewed()
        return self.enter(call)

    def allowance(self, principal: str) -> Allowance | None:
        """What a principal may send a second; None when it is not limited."""
        known = self._registry.principals.get(principal)
        if known is None or not known.limits:
            return None
        allowance = self._allowances.get(principal)
        if allowance is None:
            allowance = self._allowances[principal] = Allowance(known.limits, self.now())
        return allowance

    def require_first(self, call: ServerCall, rule: Rule, request: Any) -> None:
        """The first request of a stream names what the call needs. Raises PermissionDenied."""
        access = self.of(call)
        if access.restricted:
            access.require(rule.needs(request))

    def leave(self, call: ServerCall) -> None:
        access = self._open.pop(call, None)
        if access is not None and access.principal:
            self._calls[access.principal] -= 1
            if not self._calls[access.principal]:
                del self._calls[access.principal]

    def of(self, call: ServerCall) -> Access:
        """The caller of a call that has entered."""
        return self._open[call]

    async def slow_down(self, call: ServerCall) -> None:
        """Keep a caller waiting whose login has failed."""
        address = call.peer().rpartition(":")[0]
        count, wait_s = self._failed.fail(address, asyncio.get_running_loop().time())
        if count & (count - 1) == 0:  # 1, 2, 4, 8: a flood of them does not flood the log
            log.warning("login failed", address=address, failures=count)
        await asyncio.sleep(wait_s)

    def look_after(self) -> None:
        """Now and again, at least once a second: end the calls of who has expired, write which keys were used."""
        now = self._broker.now()
        if self._tokens is not None:
            self._tokens.look_after()
        if self._next_expiry is not None and now >= self._next_expiry:
            self._review()
        if self._recognition.used and now - self._use_written_at >= USE_WRITTEN_NS:
            self.write_use()

    def write_use(self) -> None:
        """Have it written when keys were used."""
        used, self._recognition.used, self._use_written_at = self._recognition.used, {}, self._broker.now()
        puts = [Put(LastUse(key, at)) for key, at in used.items() if key in self._registry.keys]
        if puts and self._broker.ready:
            try:
                self._broker.submit(ChangeAccess(puts, lambda _: None))
            except BrokerError:
                self._recognition.used = used | self._recognition.used

    def last_use(self, key: str) -> int:
        """When a key was used; 0 when that is not known."""
        written = self._registry.last_use.get(key)
        return self._recognition.used.get(key, written.at if written is not None else 0)

    def check_scrape(self, authorization: Sequence[str], certificate: PeerCertificate | None) -> None:
        """Metrics name queues, fairness keys and throttle keys: whoever reads them must be allowed to browse all.

        Raises Unauthenticated, ProviderAway or PermissionDenied.
        """
        if not self._registry.enforced:
            return
        try:
            caller = self._recognition.recognise(authorization, certificate)
        except UnknownSigner:
            assert self._tokens is not None
            self._tokens.renew()  # the next scrape finds it
            raise
        rights = self._registry.rights(caller.principal, caller.roles)
        for kind in (Kind.QUEUE, Kind.THROTTLE):
            if not rights.allow_every(Permission.BROWSE, kind):
                raise denied(caller.principal, Permission.BROWSE, kind, EVERY)

    def _note_expiry(self, caller: Caller) -> None:
        """When a key expires is known from the registry."""
        if caller.expires_at and (self._next_expiry is None or caller.expires_at < self._next_expiry):
            self._next_expiry = caller.expires_at

    def _review(self) -> None:
        """Rights have changed, or something has expired: end the calls that are not allowed any more."""
        self._next_expiry = self._registry.next_expiry(self._broker.now())
        self._allowances.clear()
        self._recognition.forget()
        if not self._registry.enforced:
            return
        for call, access in list(self._open.items()):
            if access.changing or access.ended is not None:
                continue
            reason = self._objection(call, access)
            if reason is None:
                assert access.caller is not None
                self._note_expiry(access.caller)
            else:
                access.ended = reason
                if access.on_end is not None:
                    access.on_end(reason)
                else:
                    call.end()

    def _objection(self, call: ServerCall, access: Access) -> BrokerError | None:
        if access.caller is None:
            return KeyEnded("this server needs an API key from now on")
        unknown = self._recognition.objection(access.caller, call.peer_certificate)
        if unknown is not None:
            return unknown
        for permission, (kind, name) in access.needs:
            if not access.allows(permission, kind, name):
                return denied(access.principal, permission, kind, name)
        return None


def is_loopback(peer: str) -> bool:
    """Whether a peer, as `ServerCall.peer` gives it, is on this machine."""
    host = peer.rpartition(":")[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
