"""What workers say to each other about throttles: worker 0 decides whose turn it is (`turns.py`), the others ask it.

A message is a JSON object. A worker says first `{"hello": {key: in flight}, "worker": n}`, then `{"want": key}`,
`{"gave": key, "level": l, "in_flight": n, "wanted": b}`, `{"flies": {key: n}}` and `{"ping": n}`. It hears
`{"grant": key, "level": l, "elsewhere": n}`, `{"recall": key}`, `{"recall": key, "if_idle": true}`,
`{"elsewhere": key, "n": n}` and `{"pong": n}`.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import structlog

from fila.broker.broker import Broker
from fila.broker.state import THROTTLE
from fila.cluster.routes import LEADER
from fila.cluster.turns import GAINS_NS, TURN_NS, Turns
from fila.core.shared_throttle import Given, SharedThrottles
from fila.core.throttle import Limit
from fila.wire.client_call import ClientCall
from fila.wire.server_call import ServerCall
from fila.wire.status import RpcError
from fila.wire.stream import EOF

TAKE_TURNS: Final = "/fila.cluster.Workers/TakeTurns"
PING_S: Final = 0.25
FREED_S: Final = 0.002
"""How long places that became free are gathered before they are told"""
_RETRY_S: Final = (0.02, 0.5)

log = structlog.get_logger(__name__)

Message = dict[str, Any]


class Here:
    """The throttles of this worker, as worker 0 talks to them. `say` takes what it is told."""

    def __init__(self, broker: Broker, throttles: SharedThrottles, say: Callable[[Message], None]) -> None:
        self._broker = broker
        self._throttles = throttles
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._freed: dict[str, None] = {}
        throttles.on_want = self._want
        throttles.on_freed = throttles.on_limited = self._count

    def hello(self) -> None:
        """Say what is in flight, and what is wanted."""
        for key in self._throttles.ask_anew():
            self._want(key)

    def hear(self, message: Message) -> None:
        """What worker 0 says."""
        now = self._broker.now()
        match message:
            case {"grant": str(key), "level": int(level), "elsewhere": int(elsewhere)}:
                if not self._throttles.grant(key, level, elsewhere, now):
                    self._give(key, Given(None, 0, wanted=False))
            case {"recall": str(key), **more}:
                given = self._throttles.recall(key, now, if_idle="if_idle" in more)
                if given is not None:
                    self._give(key, given)
            case {"elsewhere": str(key), "n": int(elsewhere)}:
                self._throttles.tell_elsewhere(key, elsewhere)
        self._broker.look_at_throttles()

    def _want(self, key: str) -> None:
        self._say({"want": key})

    def _give(self, key: str, given: Given) -> None:
        self._say({"gave": key, **given._asdict()})

    def _count(self, key: str) -> None:
        """Say soon how much of a key is in flight."""
        if not self._freed:
            self._loop.call_later(FREED_S, self._say_freed)
        self._freed[key] = None

    def _say_freed(self) -> None:
        freed, self._freed = self._freed, {}
        find = self._throttles.find
        self._say({"flies": {key: find(key).in_flight for key in freed}})


class Deciding:
    """Worker 0: whose turn it is."""

    def __init__(self, broker: Broker, throttles: SharedThrottles, workers: int, *, restarted: bool) -> None:
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._told: dict[int, asyncio.Queue[Message]] = {}
        self._turns = Turns(workers, self._send, broker.now(), begins_empty=restarted)
        for key, limit in throttles.limits().items():
            self._turns.limit(key, limit, broker.now())
        self._here = Here(broker, throttles, self._hear_own)
        self._turns.hello(LEADER, throttles.capped(), broker.now())
        self._here.hello()

    def setting(self, key: str, value: str | None) -> None:
        """An entry of the configuration was set or removed."""
        if key.startswith(THROTTLE):
            name = key.removeprefix(THROTTLE)
            if value is None:
                self._turns.unlimit(name)
            else:
                self._turns.limit(name, Limit.parse(value), self._broker.now())
            self._go_on()

    async def serve(self, _: object, call: ServerCall) -> None:
        """Talk with one worker."""
        first = await call.read()
        if first is EOF:
            return
        hello = json.loads(first)
        worker = int(hello["worker"])
        told = self._told[worker] = asyncio.Queue()
        telling = asyncio.ensure_future(_tell(call, told))
        try:
            self._turns.hello(worker, hello["hello"], self._broker.now())
            self._go_on()
            while (heard := await call.read()) is not EOF:
                if self._told.get(worker) is not told:
                    break  # it has come again, and has no bucket of what it says here
                message = json.loads(heard)
                if "ping" in message:
                    told.put_nowait({"pong": message["ping"]})
                else:
                    self._hear(worker, message)
        finally:
            telling.cancel()
            if self._told.get(worker) is told:
                del self._told[worker]
                self._turns.lost(worker, self._broker.now())

    def _hear_own(self, message: Message) -> None:
        self._loop.call_soon(self._hear, LEADER, message)  # never in the middle of a tick

    def _hear(self, worker: int, message: Message) -> None:
        now, turns = self._broker.now(), self._turns
        match message:
            case {"want": str(key)}:
                turns.want(worker, key, now)
            case {"gave": str(key), **given}:
                turns.gave(worker, key, Given(**given), now)
            case {"flies": dict(in_flight)}:
                for key, count in in_flight.items():
                    turns.flies(worker, key, count, now)
        self._go_on()

    def _send(self, worker: int, message: Message) -> None:
        if worker == LEADER:
            self._loop.call_soon(self._here.hear, message)
        elif worker in self._told:
            self._told[worker].put_nowait(message)

    def _go_on(self) -> None:
        if self._timer is None and self._turns.contested:
            self._timer = self._loop.call_later(TURN_NS / 1e9, self._next_turn)

    def _next_turn(self) -> None:
        self._timer = None
        self._turns.next_turn(self._broker.now())
        self._go_on()


async def _tell(call: ServerCall, told: "asyncio.Queue[Message]") -> None:
    while True:
        await call.write(_encode(await told.get()))


class Asking:
    """Another worker: asks worker 0."""

    def __init__(
        self, broker: Broker, throttles: SharedThrottles, worker: int, open_call: Callable[[], ClientCall]
    ) -> None:
        self._broker = broker
        self._throttles = throttles
        self._worker = worker
        self._open = open_call
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        self._connected = False
        self._pings: dict[int, int] = {}
        self._number = 0
        throttles.hold_until(0, broker.now())
        self._here = Here(broker, throttles, self._say)
        self._task = asyncio.ensure_future(self._talk())

    def _say(self, message: Message) -> None:
        if self._connected:
            self._said.put_nowait(message)

    async def _talk(self) -> None:
        wait_s = _RETRY_S[0]
        while True:
            call = self._open()
            self._said = asyncio.Queue()
            self._connected = True
            self._say({"hello": self._throttles.capped(), "worker": self._worker})
            self._here.hello()
            tasks = [asyncio.ensure_future(self._tell(call, self._said)), asyncio.ensure_future(self._ping())]
            try:
                while (heard := await call.read()) is not EOF:
                    wait_s = _RETRY_S[0]
                    message = json.loads(heard)
                    if "pong" in message:
                        self._throttles.hold_until(self._pings.pop(message["pong"]) + GAINS_NS, self._broker.now())
                        self._broker.look_at_throttles()
                    else:
                        self._here.hear(message)
            except RpcError as error:
                log.debug("worker 0 is away", reason=error.details())
            finally:
                self._connected = False
                self._pings.clear()
                self._throttles.lose_all()
                for task in tasks:
                    task.cancel()
                call.cancel()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _RETRY_S[1])

    async def _tell(self, call: ClientCall, said: "asyncio.Queue[Message]") -> None:
        with suppress(RpcError):  # whoever listens hears of it
            while True:
                await call.write(_encode(await said.get()))

    async def _ping(self) -> None:
        """Ask for a sign of life now and again."""
        while True:
            self._number += 1
            self._pings[self._number] = self._broker.now()
            self._say({"ping": self._number})
            await asyncio.sleep(PING_S)

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
