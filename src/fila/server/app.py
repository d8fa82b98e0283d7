"""Putting the server together, and taking it apart in the right order."""

import asyncio
import gc
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import structlog
from grpc_health.v1 import health, health_pb2

from fila.auth.registry import Registry
from fila.auth.rights import BUILT_IN
from fila.broker.broker import Broker
from fila.broker.commit import Committer
from fila.broker.engine import Engine
from fila.broker.journal import Journal
from fila.broker.recovery import recover
from fila.broker.scripts import Scripting
from fila.broker.state import BrokerState
from fila.config import Config, JwtConfig, ServerConfig, StorageConfig
from fila.core.errors import StoreUnusable
from fila.metrics.http import CONNECTIONS, Wrap
from fila.server import admin, auth, message_codec, service
from fila.server.access import Gate
from fila.server.audit import log_entry
from fila.server.busy_poll import BusyPoll
from fila.server.certificates import Certificates
from fila.server.clock import SteadyClock
from fila.server.description import Description
from fila.server.greeting import Greeting
from fila.server.handshake_log import HandshakeLog
from fila.server.interceptor import guarded
from fila.server.page_access import PageAccess
from fila.server.protected_mode import ProtectedMode
from fila.server.reading import Reading
from fila.server.recognition import Tokens
from fila.server.refusals import Refusals
from fila.server.standard import Health, health_methods, reflection_methods
from fila.server.status import describe_refusal
from fila.server.streams import Streams
from fila.server.types import Method, ServerCall
from fila.settings import SettingsError
from fila.storage.base import Storage
from fila.storage.opening import open_store
from fila.telemetry.loop_watchdog import LoopWatchdog
from fila.telemetry.telemetry import Telemetry
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila.wire import server as wire
from fila.wire.address import split_address
from fila.wire.handshakes import Handshakes
from fila.wire.limits import Limits
from fila.wire.memory_quota import Shares
from fila.wire.time_slice import RoundRobin
from fila.wire.tls_layer import TlsLayer

if TYPE_CHECKING:
    from fila.server.member import Member, Place

log = structlog.get_logger(__name__)

BATCH_BYTES = 16 << 20
"""The largest request. A batch may hold several payloads of the largest size."""

STORE_CHECK_S = 0.25
"""How often it is checked that the store is still there, how much disk space is free, and what the wall clock says."""

STREAM_WINDOW = 1 << 20
"""The flow-control window of each call. A larger request gets a larger window when there is memory for all of it. It is
the largest batch of the SDK: with 64 KiB each batch waited for a round trip, and a producer lost a quarter of its
speed."""

WORK_BYTES = 16 << 20
"""Requests that are decoded and not answered yet. Beyond that they wait, the small ones first."""

EXIT_DEFECT = 70
"""As in sysexits.h: an internal software error."""

HOT_SERVICE = service_pb2.DESCRIPTOR.services_by_name["FilaService"].full_name
PRODUCERS = "fila.producers"
"""The name under which a health check asks whether messages are taken: not while the disk is full."""

ADMIN_SERVICE = admin_pb2.DESCRIPTOR.services_by_name["FilaAdmin"].full_name
AUTH_SERVICE = auth_pb2.DESCRIPTOR.services_by_name["FilaAuth"].full_name


class Server:
    """A broker with its store and its gRPC server. Starts in `start`, stops in `stop`, in this order and no other."""

    def __init__(
        self,
        config: Config,
        open_store: Callable[[StorageConfig], Storage] = lambda config: open_store(config, _log_migration),
        member: "Member | None" = None,
        committer: Committer | None = None,
    ) -> None:
        """`member` of a server with several workers. `committer`: of a broker that is kept in several places."""
        self._config = config
        self._committer = committer
        self._member = member
        self._open_store = open_store
        self._turns = LoopWatchdog(config.server.slow_turn_ms)
        self._certificates = Certificates(config.tls) if config.tls.enabled else None
        self._handshake_log = HandshakeLog()
        self._protected_mode = ProtectedMode(config.server, self.has_credentials)
        self._full = False
        self.loading = False
        """Whether messages of before the start are still read"""
        self.on_loaded: Callable[[], None] = _nothing
        """Called when they were read after it"""
        self._store_timer: asyncio.TimerHandle | None = None
        self.port = 0
        """0 where another listens for it"""

    @property
    def failed(self) -> asyncio.Future[None]:
        """Raises when the broker cannot go on because of a defect of its own."""
        return self._broker.failed

    async def start(self) -> None:
        """Raises StoreUnusable, SettingsError for certificates and tokens, or OSError when the address is taken."""
        began = time.perf_counter()
        config = self._config
        if self._certificates is not None:
            self._certificates.load()
        tokens = self._tokens = await _tokens(config.jwt) if config.jwt.enabled else None
        store = self._open_store(config.storage)
        for notice in store.notices:
            log.warning(notice.text, files=notice.files)
        try:
            throttles = None if self._member is None else self._member.throttles
            scripting = _scripting(config)
            # The journal begins with what each queue holds.
            background = not config.journal.enabled
            state = recover(store, store.node, config.limits, scripting, config.audit, throttles, background=background)
            state.audit.on_entry = log_entry
            journal = Journal(store, config.journal)
        except BaseException:
            store.close()
            raise
        self._store = store
        self._clock = SteadyClock(not_before=state.clock_mark)
        self._broker = Broker(Engine(state, store, config.scheduler, journal, self._committer), store, self._clock)
        if config.server.stay_awake_us:
            self._broker.after_tick = BusyPoll(config.server.stay_awake_us / 1e6).begin
        self._broker.on_turn = self._turns.ended
        _warn_of_unknown_roles(config.jwt, state.access)
        self._gate = Gate(self._broker, tokens)
        self._refusals = Refusals(self._broker)
        pages = PageAccess(config.tls, self._protected_mode, self._gate)
        instance = f"{store.node:014x}"
        wrap = None if self._certificates is None else self._secure_pages(self._certificates)
        self._telemetry = Telemetry(config.telemetry, self._broker, instance, self._turns, pages.refuse, wrap)
        try:
            await self._telemetry.start()
            await self.open(await self._methods())
            self._telemetry.serving = True
        except BaseException:
            await self._telemetry.stop()
            self._broker.close()
            raise
        self._watch_store()
        if self._certificates is not None:
            self._certificates.watch()
        seconds = round(time.perf_counter() - began, 3)
        self.loading = bool(state.loading)
        log.info("recovered", queues=len(state.queues), messages=_known(state), seconds=seconds)
        if self.port:
            log.info("listening", address=config.server.listen_addr, port=self.port)
        self._protected_mode.log_state()
        if self._member is not None:
            self._member.serving()

    def has_credentials(self) -> bool:
        """Whether every caller has to show who it is."""
        return self._config.tls.client_auth == "required" or self._broker.state.access.enforced

    def _secure_pages(self, certificates: Certificates) -> Wrap:
        """TLS for the HTTP port."""
        handshakes = Handshakes(RoundRobin(asyncio.get_running_loop()), self._handshake_log.failed, CONNECTIONS)

        def wrap(protocol: asyncio.Protocol) -> TlsLayer:
            secure = partial(certificates.http().wrap_bio, server_side=True)
            return TlsLayer(protocol, secure, _ignore, handshakes)

        return wrap

    def renew_certificates(self) -> None:
        """Take up new certificate files, and new keys of the identity provider, now."""
        if self._certificates is not None:
            self._certificates.renew(always=True)
        if self._tokens is not None:
            self._tokens.renew()

    def _watch_store(self) -> None:
        """Look after the store, now and again and again: it may be taken away under a running server."""
        try:
            self._store.check()
        except StoreUnusable as lost:
            self._broker.fail(lost)
        else:
            self._report_disk_space()
            self._report_loading()
            self._follow_wall_clock()
            self._gate.look_after()
            self._refusals.look_after()
            self._broker.operators.end_sweeps()
            self._store_timer = asyncio.get_running_loop().call_later(STORE_CHECK_S, self._watch_store)

    def _follow_wall_clock(self) -> None:
        was_set = self._clock.adjust()
        if was_set:
            log.warning("the wall clock was set: delays and leases go on as they were", by_ms=was_set // 1_000_000)

    def _report_loading(self) -> None:
        """Log when all messages of before the start are known, if they were not at the start."""
        state = self._broker.state
        if self.loading and not state.loading:
            self.loading = False
            self.on_loaded()
            log.info("all messages are read", queues=len(state.queues), messages=_known(state))

    def _report_disk_space(self) -> None:
        """Log when producers begin to be refused because the disk is full, and when they are accepted again."""
        refusal = self._store.refusal()
        if self._full == (refusal is not None):
            return
        self._full = refusal is not None
        if refusal is not None:
            log.warning("producers are refused", reason=str(refusal))
        else:
            log.info("disk space is available again: producers are accepted", free_bytes=self._store.free_bytes())
        status = health_pb2.HealthCheckResponse
        self._health.set(PRODUCERS, status.NOT_SERVING if self._full else status.SERVING)

    async def stop(self) -> None:
        """Finish and flush what was accepted, end streams with UNAVAILABLE, close the store."""
        self._health.stop()
        self._gate.write_use()
        self._refusals.write()
        stopped = asyncio.create_task(self.close(self._config.server.shutdown_grace_ms / 1000))
        await self._broker.stop()
        self._streams.stop()
        await self.finished()
        await stopped
        if self._member is not None:
            await self._member.stop(self._config.server.shutdown_grace_ms / 1000)
        if self._store_timer is not None:
            self._store_timer.cancel()
        if self._certificates is not None:
            self._certificates.stop()
        self._broker.close()
        await self._telemetry.stop()
        log.info("stopped")

    async def _methods(self) -> dict[str, Method]:
        """All that is served, by path."""
        config = self._config
        self._streams = Streams()
        gate, refusals = self._gate, self._refusals
        member = self._member
        hot = service.FilaService(self._broker, self._streams, config.limits, gate, self._telemetry.tracer)
        description = Description(config, self._protected_mode, self._certificates, self._broker)
        slow = admin.FilaAdmin(self._broker, config.scheduler, config.lua, gate, description.write)
        self._health = self.health()
        largest = largest_request(config)
        greeting = Greeting(config, self._broker, largest, self.cluster_map(), transactions=member is None)
        reading = Reading(self._broker, gate)
        methods = {
            **guarded(HOT_SERVICE, service.methods(hot, reading, greeting, config.limits), gate, refusals),
            **guarded(ADMIN_SERVICE, admin.methods(slow), gate, refusals),
            **guarded(AUTH_SERVICE, auth.methods(auth.FilaAuth(self._broker, gate)), gate, refusals),
        }
        if member is not None:
            methods = await self._join(member, methods, reading, greeting, largest)
        return {
            **methods,
            **health_methods(self._health),
            **reflection_methods((HOT_SERVICE, ADMIN_SERVICE, AUTH_SERVICE, health.SERVICE_NAME)),
        }

    def health(self) -> Health:
        return Health(HOT_SERVICE, ADMIN_SERVICE, AUTH_SERVICE, PRODUCERS)

    def cluster_map(self) -> "Callable[[ServerCall], service_pb2.ClusterMap] | None":
        """Who has which queue; None: all are here."""
        return None if self._member is None else self._member.cluster_map

    async def open(self, methods: dict[str, Method]) -> None:
        """Serve clients. Raises OSError when the address is taken."""
        config, member = self._config, self._member
        largest = largest_request(config)
        self._server = wire.Server(
            methods,
            Limits(max_message_bytes=largest, stream_window=STREAM_WINDOW),
            on_turn=self._turns.ended,
            quotas=quotas(config.server, largest),
            refuse_peer=self._protected_mode.refuse_peer,
            on_handshake_failed=self._handshake_log.failed,
            describe_refusal=describe_refusal,
        )
        address = config.server.listen_addr
        try:
            tls = None if self._certificates is None else self._certificates.grpc
            self.port = await self._server.listen(*split_address(address), tls, shared=member is not None)
            if member is not None and member.own_address:
                address = member.own_address
                await self._server.listen(*split_address(address), tls)
        except (OSError, ValueError) as cause:
            raise OSError(f"cannot listen on {address}: is it in use?") from cause

    async def finished(self) -> None:
        """All that was accepted is done."""

    async def close(self, grace_s: float) -> None:
        """Take nothing new, and let calls end for so long."""
        await self._server.stop(grace_s)

    async def _join(
        self, member: "Member", methods: dict[str, Method], reading: Reading, greeting: Greeting, largest: int
    ) -> dict[str, Method]:
        """Be one of several workers. Returns the methods for clients."""
        from fila.server.spread import SpreadService, keeping

        config, gate = self._config, self._gate
        member.open(largest, config.server.listen_addr)
        hot = SpreadService(self._broker, self._streams, config.limits, gate, self._telemetry.tracer)
        member.spread(hot)
        spread = keeping(service.methods(hot, reading, greeting, config.limits))
        batches = guarded(HOT_SERVICE, spread, gate, self._refusals)
        held = max(config.server.max_held_bytes, 4 * largest)
        return await member.join(self._broker, methods, batches, held, self._turns.ended)


def _known(state: BrokerState) -> int:
    """How many messages are known."""
    return sum(queue.depth + len(queue.leases) for queue in state.queues.values())


def _log_migration(found: int, made: int, entries: int) -> None:
    log.info("the store is being migrated", from_format=found, to_format=made, entries=entries)


async def _tokens(config: JwtConfig) -> Tokens:
    """Raises SettingsError."""
    try:
        from fila.server.tokens import assembly
    except ModuleNotFoundError as error:
        raise SettingsError(f"jwt: needs the package {error.name}: pip install 'fila[server,jwt]'") from error
    return await assembly.start(config)


def _warn_of_unknown_roles(config: JwtConfig, known: Registry) -> None:
    """They may be made later. Until then they bring nothing, which is hard to see."""
    named = {entry.rpartition("=")[2].partition(":")[0] for entry in config.roles}
    for role in sorted(named - BUILT_IN.keys() - known.roles.keys()):
        log.warning("jwt.roles names a role that does not exist: it brings no rights", role=role)


def _ignore(_: object) -> None:
    pass


def _nothing() -> None:
    pass


def largest_request(config: Config) -> int:
    return max(BATCH_BYTES, 2 * config.limits.max_payload_bytes)


def quotas(config: ServerConfig, largest: int) -> wire.Quotas:
    """One connection can always bring the largest request, and two of them never use up the memory quota."""
    held = max(config.max_held_bytes, 4 * largest)
    return wire.Quotas(
        connections=config.max_connections,
        peer_connections=config.max_peer_connections,
        shares=Shares(held, held * 3 // 4, held * 3 // 8),
        work_bytes=max(WORK_BYTES, largest),
    )


def _scripting(config: Config) -> Scripting:
    def opened(queue: str, hook: str, kind: str, _text: str) -> None:
        # The text is the script's own: it may hold header values, which are never logged.
        log.warning("a hook failed repeatedly and is bypassed", queue=queue, hook=hook, kind=kind)

    def broken(queue: str, reason: str) -> None:
        log.error("the script of a queue can no longer be used and is left out", queue=queue, reason=reason)

    return Scripting(config.lua, message_codec.read_body, on_open=opened, on_broken=broken)


def calm_garbage_collector(*, loading: bool = False) -> None:
    """Look for cycles less often, and never among what recovery made, now or while the broker works (`loading`).

    Messages in memory are no cycles, and looking at them again and again is what a million of them cost most:
    recovery took 3.0 s with the collector's defaults and 1.3 s without it. Not too seldom either: to collect 50,000
    objects, which a flood of calls leaves behind, takes 15 to 40 ms at once. So what is made while the broker works is
    looked at twice, in small portions, until it is all there.
    """
    gc.freeze()
    gc.set_threshold(10_000, *((5, 1_000_000) if loading else (50, 40)))
    gc.enable()


def _calm_garbage_collector_again() -> None:
    """When all is loaded."""
    gc.collect(1)  # what calls have left behind lately, which would stay
    calm_garbage_collector()


async def _start_unless(server: Server, stop: asyncio.Event) -> bool:
    """Start a worker, which waits for others, unless it is to stop before. Returns whether it has started."""
    starting, stopping = asyncio.ensure_future(server.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    started = starting.done()
    (stopping if started else starting).cancel()
    try:
        await starting
    except asyncio.CancelledError:
        log.info("stopped before it served")
    return started


async def serve(config: Config, place: "Place | None" = None) -> None:
    """Run until SIGTERM or SIGINT. With a `place`, as one of several workers."""
    gc.disable()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    member = None
    if place is not None:
        from fila.server.member import Member

        member = Member(place, stop.set)
    server = Server(config, member=member)
    loop.add_signal_handler(signal.SIGHUP, server.renew_certificates)
    if member is None:
        await server.start()
    elif not await _start_unless(server, stop):
        return
    calm_garbage_collector(loading=server.loading)
    server.on_loaded = _calm_garbage_collector_again
    server.failed.add_done_callback(lambda _: stop.set())
    await stop.wait()
    if server.failed.done():
        reason = server.failed.exception()
        if isinstance(reason, StoreUnusable):
            log.critical("the store can no longer be trusted and the server ends", reason=str(reason))
            raise reason
        log.critical("the broker has a defect and ends; a restart recovers everything", exc_info=reason)
        raise SystemExit(EXIT_DEFECT)
    log.info("stopping")
    await server.stop()
