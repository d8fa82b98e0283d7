"""One member of a cluster: follows the log into a store of its own, and serves while it owns the shard.

Rules of this file:
- Every member takes every call. The owner serves, the others pass on (`passing.py`).
- A member owns once in the life of its process. Who is deposed ends all that it served and begins anew, so that nothing
  of its memory is left, and follows.
- What an operator must decide ends the process: a log that has lost something, or a store that is not the cluster's.
"""

import asyncio
import gc
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic_ns
from typing import Final

import structlog
from grpc_health.v1 import health, health_pb2

from fila.broker.access import has_keys
from fila.cluster.folder import check_one
from fila.cluster.peers import Peers
from fila.config import Config
from fila.core.errors import BrokerError, SteppedDown, StoreFailed, StoreUnusable
from fila.replicas.address import BadAddress
from fila.replicas.entry import Kind, Unreadable
from fila.replicas.epochs import Overtaken
from fila.replicas.folder import claim
from fila.replicas.loading import open_replica
from fila.replicas.log import LogError, LogUnavailable, ReplicatedLog, Truncated, Unfit
from fila.replicas.opening import open_log
from fila.replicas.owner import Owner, take_over
from fila.replicas.replica import Counted, Replica
from fila.replicas.shared import SharedCommitter, SharedStore, node_of
from fila.replicas.shortening import keep_short
from fila.replicas.tail import Tail
from fila.replicas.view import SILENCE, Beat, View
from fila.replicas.watching import WATCH, Watching, telling
from fila.server.app import (
    ADMIN_SERVICE,
    AUTH_SERVICE,
    EXIT_DEFECT,
    HOT_SERVICE,
    PRODUCERS,
    STREAM_WINDOW,
    Server,
    calm_garbage_collector,
    largest_request,
    quotas,
)
from fila.server.passing import MemberForwarding, Passing
from fila.server.protected_mode import ProtectedMode
from fila.server.standard import Health, health_methods, reflection_methods
from fila.server.status import describe_refusal
from fila.server.types import Method, ServerCall
from fila.settings import SettingsError
from fila.storage.opening import open_store
from fila.v1 import service_pb2 as pb
from fila.wire import server as wire
from fila.wire.address import is_loopback, split_address
from fila.wire.limits import Limits

log = structlog.get_logger(__name__)

SHARD: Final = 0
LOOK_S: Final = 0.05
LOOK_AT_LOG_S: Final = 0.5
"""How often an owner looks whether it still is one, though it has nothing to write"""
DEPOSED_GRACE_S: Final = 1.0
STOP_S: Final = 5.0
"""How long an owner that stops waits for the log: when callers have had their time, for what is under way, and for the
word who follows"""
OWNER: Final = "fila.owner"
"""The name under which a health check asks whether a member owns the shard"""

_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING


class OwningServer(Server):
    """The broker of the owner. Its methods are served where the member listens."""

    def __init__(self, config: Config, member: "Member", owner: Owner, store: SharedStore) -> None:
        super().__init__(config, lambda _: store, committer=SharedCommitter(store, owner))
        self._clustered = member
        self._owner = owner

    def health(self) -> Health:
        return self._clustered.health

    def cluster_map(self) -> Callable[[ServerCall], pb.ClusterMap]:
        return self._clustered.cluster_map

    async def open(self, methods: dict[str, Method]) -> None:
        self._clustered.serve(methods)

    async def finished(self) -> None:
        await self._clustered.hand_over(self._owner)

    async def close(self, grace_s: float) -> None:
        await self._clustered.close(grace_s if self._owner.ended is None else min(grace_s, DEPOSED_GRACE_S))

    def step_down(self, reason: SteppedDown) -> None:
        """Tell all that wait, also if nothing is being written."""
        self._broker.step_down(reason)


class Member:
    """A member, from its start to its end. To be made on its event loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names, self._addresses = config.cluster.names, config.cluster.addresses
        self._number = self._names.index(config.cluster.member)
        self._view = View(self._number, len(self._names), monotonic_ns(), random.randrange(SILENCE // 3))
        self._owner: Owner | None = None
        self._server: OwningServer | None = None
        self._tries = False
        self._counted = 0
        """Entries of the log since it began to take over"""
        self._named = False
        """Whether an owner that went has named this member to follow it"""
        self._watching: list[Watching] = []
        self._beside: list[asyncio.Future[None]] = []
        """What goes on while it serves, and uses the owner"""
        self.health = Health(HOT_SERVICE, ADMIN_SERVICE, AUTH_SERVICE, PRODUCERS, OWNER)
        self.health.set(OWNER, _NOT_SERVING)

    async def start(self) -> None:
        """Open the log and the store, and listen. Raises SettingsError, StoreUnusable or OSError."""
        config, cluster = self._config, self._config.cluster
        self._log = await _open_log("log", cluster.log)
        self._snaps = await _open_log("snapshots", cluster.snapshots) if cluster.snapshots else None
        path = Path(config.storage.data_dir)
        check_one(path)
        claim(path, cluster.name)
        self._copy = open_store(replace(config.storage, durability="wal"))
        self._tail = Tail(self._log, await self._open_replica())
        largest = largest_request(config)
        peers = self._peers = Peers.of_members(self._addresses, self._number, largest)
        forwarding = MemberForwarding(peers, self._names, self._addresses, self._epoch)
        self._passing = Passing(forwarding, lambda: self._view.owner(monotonic_ns()), self._has_taken_over)
        self._methods = {
            WATCH: telling(cluster.name, self._beat),
            **health_methods(self.health),
            **reflection_methods((HOT_SERVICE, ADMIN_SERVICE, AUTH_SERVICE, health.SERVICE_NAME)),
        }
        protected = ProtectedMode(config.server, self._has_credentials)
        if protected.on and not all(is_loopback(split_address(each)[0]) for each in self._addresses):
            log.warning("protected mode: members on other machines are refused", open_with="keys, insecure")
        self._wire = wire.Server(
            {**self._methods, **self._passing.methods()},
            Limits(max_message_bytes=largest, stream_window=STREAM_WINDOW),
            quotas=quotas(config.server, largest),
            refuse_peer=protected.refuse_peer,
            describe_refusal=describe_refusal,
        )
        address = config.server.listen_addr
        try:
            port = await self._wire.listen(*split_address(address))
        except (OSError, ValueError) as cause:
            raise OSError(f"cannot listen on {address}: is it in use?") from cause
        for number, other in enumerate(self._addresses):
            if number != self._number:
                self._watching.append(Watching(cluster.name, number, other, self._view))
        log.info("listening", address=address, port=port, member=cluster.member, cluster=cluster.name)

    async def _open_replica(self) -> Replica:
        """Raises StoreUnusable, or OSError while the log cannot be read."""
        if self._snaps is None:
            return Replica(self._copy, SHARD)
        while True:
            try:
                return await open_replica(self._copy, SHARD, self._log, self._snaps)
            except Truncated:
                continue  # more was cut off meanwhile: there is a later snapshot
            except LogUnavailable as cause:
                raise OSError(f"the log of the cluster cannot be read: {cause}") from cause
            except (Unreadable, LogError, StoreFailed) as cause:
                raise StoreUnusable(f"the log of the cluster cannot be followed: {cause}") from cause

    async def run(self) -> None:
        """Follow until it is this member's turn, own the shard, and return when it is to begin anew: it was deposed, or
        the log was cut off behind what it has read.

        Raises StoreUnusable for a log that has lost something, or what the broker has failed of.
        """
        try:
            while self._owner is None:
                await self._follow()
                await self._try_to_own()
            await self._serve(self._owner)
        except Truncated as cause:
            if self._snaps is None:
                raise StoreUnusable(f"{cause}, and cluster.snapshots does not say where snapshots are") from cause
            log.warning("this member is too far behind, and begins with a snapshot", reason=str(cause))
        except (Unreadable, LogError, StoreFailed) as cause:
            raise StoreUnusable(f"the log of the cluster cannot be followed: {cause}") from cause

    async def _try_to_own(self) -> None:
        self._tries = True
        try:
            await self._tail.catch_up(self._seen)
            if self._is_my_turn():  # nobody has taken over meanwhile
                self._counted = 0
                with suppress(Overtaken):
                    self._owner = await take_over(
                        self._tail, self._config.cluster.member, self._on_end, seen=self._seen, wanted=self._is_free
                    )
        finally:
            self._tries = False

    def _is_my_turn(self) -> bool:
        return self._named or self._view.should_try(self._tail.replica.position, monotonic_ns())

    def _is_free(self) -> bool:
        """Whether nobody else has been seen to own the shard since this member began to take it over."""
        return self._named or (self._counted == 0 and self._view.owner(monotonic_ns()) is None)

    async def _follow(self) -> None:
        """Until it is this member's turn to try."""
        following = asyncio.ensure_future(self._tail.follow(self._seen))
        try:
            while not self._is_my_turn():
                await asyncio.wait({following}, timeout=LOOK_S)
                if following.done():
                    following.result()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    def _seen(self, counted: Counted) -> None:
        self._counted += 1
        self._view.log_moved(monotonic_ns())
        if counted.head.kind is Kind.RELEASE:
            self._named = counted.successor == self._config.cluster.member
        elif counted.head.kind is Kind.BARRIER:
            self._named = False
            if counted.barrier is not None and counted.barrier.member in self._names:
                self._view.took(self._names.index(counted.barrier.member), monotonic_ns())

    async def _serve(self, owner: Owner) -> None:
        cluster = self._config.cluster
        store = SharedStore(self._copy, node_of(cluster.name))
        self._server = server = OwningServer(self._config, self, owner, store)
        await server.start()
        calm_garbage_collector(loading=server.loading)
        log.info("this member owns the shard", epoch=self._epoch(), tick=self._tail.replica.mark.tick)
        self._beside.append(asyncio.ensure_future(self._look(owner)))
        if self._snaps is not None:
            keeping = keep_short(self._log, self._snaps, self._tail.replica, owner, self._stored_bytes)
            self._beside.append(asyncio.ensure_future(keeping))
        await asyncio.wait({server.failed})
        failure = server.failed.exception()
        if failure is not None and not isinstance(failure, SteppedDown):
            raise failure
        log.warning("this member does not own the shard any more", reason=str(failure))

    async def _look(self, owner: Owner) -> None:
        """Learn from the log that another has taken over, and let those hear of this owner through it that do not
        hear of it otherwise, also while there is nothing to write.
        """
        while True:
            position = self._tail.replica.position
            await asyncio.sleep(LOOK_AT_LOG_S)
            if self._tail.replica.position == position:
                await (owner.beat() if self._view.misses_some(monotonic_ns()) else owner.look())

    def _stored_bytes(self) -> int:
        sizes = self._copy.sizes()
        return 0 if sizes is None else sizes.file_bytes + sizes.buffer_bytes

    def _on_end(self, reason: SteppedDown) -> None:
        if self._server is not None:
            self._server.step_down(reason)

    # What is served

    @property
    def owns(self) -> bool:
        return self._server is not None

    def serve(self, methods: Mapping[str, Method]) -> None:
        """This member owns the shard, and has these methods."""
        self._passing.local = methods
        self._wire.serve({**methods, **self._methods})
        self.health.set(OWNER, _SERVING)

    def cluster_map(self, _: ServerCall) -> pb.ClusterMap:
        members = [
            pb.Member(id=name, address=address) for name, address in zip(self._names, self._addresses, strict=True)
        ]
        return pb.ClusterMap(version=self._epoch(), members=members, owners=[self._number], self=self._number)

    def _beat(self) -> Beat:
        replica = self._tail.replica
        return Beat(self._has_taken_over(), replica.mark.epoch, replica.position, self._tries)

    def _has_taken_over(self) -> bool:
        """Whether this member owns the shard, or is about to serve it."""
        return self._owner is not None and self._owner.ended is None

    def _epoch(self) -> int:
        return self._tail.replica.mark.epoch

    def _has_credentials(self) -> bool:
        return has_keys(self._copy) if self._server is None else self._server.has_credentials()

    # The end

    async def hand_over(self, owner: Owner) -> None:
        """Name the member that has read furthest to follow this one."""
        successor = self._view.furthest(monotonic_ns())
        if owner.ended is None and successor is not None:
            with suppress(LogError, TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await owner.release(self._names[successor])
                log.info("handed over", to=self._names[successor])

    async def close(self, grace_s: float) -> None:
        await self._wire.stop(grace_s)

    async def stop(self) -> None:
        """Finish what was accepted, hand over, and let go of everything. Does not wait for ever for a log that is away:
        then callers are told to ask again.
        """
        for task in self._beside:  # or they would wait for the log before the hand-over
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        grace_s = self._config.server.shutdown_grace_ms / 1000
        if self._server is not None and self._owner is not None:
            stopping = asyncio.ensure_future(self._server.stop())
            await asyncio.wait({stopping}, timeout=grace_s + STOP_S)
            if not stopping.done():
                await self._owner.close()
            await stopping
        else:
            self.health.stop()
            await self._wire.stop(grace_s)
        for watching in self._watching:
            await watching.stop()
        await self._peers.close()
        if self._owner is not None:
            await self._owner.close()
        await self._tail.rest()
        await self._log.close()
        if self._snaps is not None:
            await self._snaps.close()
        self._copy.close()


async def _open_log(name: str, url: str) -> ReplicatedLog:
    """Raises SettingsError, or OSError while the log cannot be reached."""
    try:
        return await open_log(url)
    except (BadAddress, Unfit) as error:
        raise SettingsError(f"cluster.{name}: {error}") from error
    except LogUnavailable as error:
        raise OSError(f"the log of the cluster cannot be reached: {error}") from error


def check(config: Config) -> None:
    """Raises SettingsError for what does not work in a cluster yet."""
    for refused, name in (
        (config.server.workers > 1, "server.workers above 1"),
        (config.tls.enabled, "tls"),
        (config.storage.store == "memory", 'storage.store = "memory"'),
    ):
        if refused:
            raise SettingsError(f"{name} does not work together with [cluster] yet: leave out one of them")


async def serve_member(config: Config) -> bool:
    """Run until SIGTERM, SIGINT, or until this member is deposed. Returns whether it is to begin anew."""
    gc.disable()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    member = Member(config)
    await member.start()
    calm_garbage_collector()
    running, stopping = asyncio.ensure_future(member.run()), asyncio.ensure_future(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if running.done():
        return await _ended(member, running)
    log.info("stopping")
    if not member.owns:  # it may be about to: what it has begun ends first
        await _end(running)
    await member.stop()
    await _end(running)
    return False


async def _end(running: "asyncio.Future[None]") -> None:
    running.cancel()
    with suppress(asyncio.CancelledError, BrokerError):
        await running


async def _ended(member: Member, running: "asyncio.Future[None]") -> bool:
    """The member was deposed, or cannot go on."""
    reason = running.exception()
    if reason is None:
        await member.stop()
        return True
    if isinstance(reason, StoreUnusable | OSError | SettingsError):
        log.critical("the member cannot go on", reason=str(reason))
        raise reason
    log.critical("the member has a defect and ends; a restart recovers everything", exc_info=reason)
    raise SystemExit(EXIT_DEFECT)
