"""Configuration and access control, the same on all workers.

Theory of operation:

- **Worker 0 leads.** A change is made there first, in its store. It tells the others in the order of its commits, and
  answers when all of them have made it. So what was answered holds everywhere, and what any worker knows, it knows.
- A worker that starts takes over what worker 0 has, as a whole, before it serves anybody. One that loses the leader
  goes on with what it knows, which nobody can change meanwhile, and takes over the whole again when the leader is back.
- A change that not all have confirmed in time is made all the same, and reaches them later: the caller is told so.

When keys were used is each worker's own business, and is not told.

What is told, each a JSON object: `{"set": [...]}` and `{"put": [...]}` are parts of the whole, `{"end": version}` ends
it; a change is `{"version": n}` with `set` or `changes`. A worker answers `{"version": n}`.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from fila.auth import records
from fila.auth.records import KINDS, LastUse, Record
from fila.auth.registry import Change, Put, Registry, Remove
from fila.broker.broker import Broker
from fila.broker.commands import ChangeAccess, SetConfig
from fila.wire.client_call import ClientCall
from fila.wire.server_call import ServerCall
from fila.wire.status import RpcError
from fila.wire.stream import EOF

FOLLOW: Final = "/fila.cluster.Workers/Follow"
CONFIRM_S: Final = 10.0
"""How long a change waits for the other workers, which may be starting"""
PIECE_BYTES: Final = 256 << 10
_RETRY_S: Final = (0.02, 0.5)

log = structlog.get_logger(__name__)

Message = dict[str, Any]


class Leader:
    """Tells the others what was changed here."""

    def __init__(self, broker: Broker, followers: Sequence[int]) -> None:
        self._broker = broker
        self._version = 0
        self._confirmed = dict.fromkeys(followers, -1)
        """Up to which version each worker has everything, since this leader has started"""
        self._told: dict[int, asyncio.Queue[Message]] = {}
        self._changed = asyncio.Event()

    async def confirmed(self) -> list[int]:
        """Wait until all workers have what is here now. Returns those that have not confirmed it in time."""
        version = self._version
        with suppress(TimeoutError):
            async with asyncio.timeout(CONFIRM_S):
                while self._behind(version):
                    self._changed.clear()
                    await self._changed.wait()
        return self._behind(version)

    async def serve(self, _: object, call: ServerCall) -> None:
        """Tell one worker everything, then each change."""
        first = await call.read()
        if first is EOF:
            return
        worker = int(json.loads(first)["worker"])
        told = self._told[worker] = asyncio.Queue()
        listening = asyncio.ensure_future(self._listen(worker, call))
        try:
            for message in list(_whole(self._broker, self._version)):
                await call.write(_encode(message))
            while True:
                await call.write(_encode(await told.get()))
        finally:
            listening.cancel()
            if self._told.get(worker) is told:
                del self._told[worker]
                self._confirmed[worker] = -1

    async def _listen(self, worker: int, call: ServerCall) -> None:
        while (heard := await call.read()) is not EOF:
            self._confirmed[worker] = int(json.loads(heard)["version"])
            self._changed.set()

    def _behind(self, version: int) -> list[int]:
        return [worker for worker, confirmed in self._confirmed.items() if confirmed < version]

    def setting(self, key: str, value: str | None) -> None:
        self._tell({"set": [[key, value]]})

    def access(self, changes: Sequence[Change]) -> None:
        written = [_write_change(change) for change in changes if _is_shared(change)]
        if written:
            self._tell({"changes": written})

    def _tell(self, message: Message) -> None:
        self._version += 1
        for told in self._told.values():
            told.put_nowait({**message, "version": self._version})


class Follower:
    """Makes the changes of the leader here."""

    def __init__(self, broker: Broker, worker: int, open_call: Callable[[], ClientCall]) -> None:
        self._broker = broker
        self._worker = worker
        self._open = open_call
        self.synced = asyncio.Event()
        """All that the leader has is here"""
        self._task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        wait_s = _RETRY_S[0]
        while True:
            call = self._open()
            try:
                await call.write(_encode({"worker": self._worker}))
                await self._take_over(call)
                wait_s = _RETRY_S[0]
                await self._take_changes(call)
            except RpcError as error:
                log.debug("the leader is away", reason=error.details())
            except Exception as error:
                log.exception("what the leader says cannot be taken over", worker=self._worker)
                self._broker.fail(error)  # it would serve with rights that were taken away
                return
            finally:
                call.cancel()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _RETRY_S[1])

    async def _take_over(self, call: ClientCall) -> None:
        """Make what is here what the leader has."""
        config: dict[str, str] = {}
        access: dict[tuple[type[Record], str], Record] = {}
        while (heard := await _heard(call)).get("end") is None:
            config.update((key, value) for key, value in heard.get("set", ()))
            for change in map(_read_change, heard.get("put", ())):
                assert isinstance(change, Put)
                access[type(change.record), records.name_of(change.record)] = change.record
        state = self._broker.state
        for key in [key for key in state.config if key not in config]:
            await self._set(key, None)
        for key, value in config.items():
            if state.config.get(key) != value:
                await self._set(key, value)
        changes: list[Change] = [
            Remove(kind, name) for kind, name in list(_known(state.access)) if (kind, name) not in access
        ]
        known = _known(state.access)
        changes += [Put(record) for place, record in access.items() if known.get(place) != record]
        if changes:
            await self._change(changes)
        self.synced.set()
        await call.write(_encode({"version": heard["end"]}))

    async def _take_changes(self, call: ClientCall) -> None:
        while True:
            heard = await _heard(call)
            for key, value in heard.get("set", ()):
                await self._set(key, value)
            changes = [_read_change(change) for change in heard.get("changes", ())]
            if changes:
                await self._change(changes)
            await call.write(_encode({"version": heard["version"]}))

    async def _set(self, key: str, value: str | None) -> None:
        await self._broker.do(partial(_setting_command, key, value))

    async def _change(self, changes: Sequence[Change]) -> None:
        await self._broker.do(lambda reply: ChangeAccess(changes, reply, decided=True))

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def _setting_command(key: str, value: str | None, reply: Callable[[Any], None]) -> SetConfig:
    return SetConfig(key, value, reply, decided=True)


async def _heard(call: ClientCall) -> Message:
    heard = await call.read()
    if heard is EOF:
        raise ConnectionError("the leader has ended the call")
    message: Message = json.loads(heard)
    return message


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _whole(broker: Broker, version: int) -> Iterator[Message]:
    """All that is told, in pieces that fit into a message."""
    for piece in _pieces([[key, value] for key, value in broker.state.config.items()]):
        yield {"set": piece}
    for piece in _pieces([_write_change(Put(record)) for record in _known(broker.state.access).values()]):
        yield {"put": piece}
    yield {"end": version}


def _pieces(parts: list[list[Any]]) -> Iterator[list[list[Any]]]:
    piece: list[list[Any]] = []
    size = 0
    for part in parts:
        piece.append(part)
        size += len(json.dumps(part))
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _known(access: Registry) -> dict[tuple[type[Record], str], Record]:
    """Every record that is told."""
    tables: tuple[dict[str, Any], ...] = (access.roles, access.principals, access.keys, access.certificates)
    return {(type(record), name): record for table in tables for name, record in table.items()}


def _is_shared(change: Change) -> bool:
    return (type(change.record) if isinstance(change, Put) else change.kind) is not LastUse


def _write_change(change: Change) -> list[Any]:
    if isinstance(change, Put):
        record = change.record
        return [records.kind_of(type(record)), records.name_of(record), records.write(record)]
    return [records.kind_of(change.kind), change.name, None]


def _read_change(written: list[Any]) -> Change:
    kind, name, text = written
    return Remove(KINDS[kind], name) if text is None else Put(records.read(kind, name, text))
