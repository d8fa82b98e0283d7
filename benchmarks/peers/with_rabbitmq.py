"""RabbitMQ: pika's SelectConnection, driven by hand. Persistent messages with publisher confirms and a window;
deliveries by prefetch, a batch acknowledged with one `multiple`.
"""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import pika
import psutil

from benchmarks.peers.client import BATCH, WINDOW, Client, Take, pace
from benchmarks.peers.server import Server, ServerFailed, answers, find_program, free_port

_QUEUE = "bench"
_PERSISTENT = pika.BasicProperties(delivery_mode=2)
_AMQP = b"AMQP\x00\x00\x09\x01"


class RabbitServer(Server):
    """One node with its own epmd, so that nothing of it is left behind and no other node is met."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._epmd_port, self._distribution_port = free_port(), free_port()
        self._epmd: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        # The script in the package's folder: the one in PATH changes to the package's own user and folders.
        program = find_program("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
        assert program is not None
        return [program]

    def environment(self) -> dict[str, str]:
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlog.console = false\nvm_memory_high_watermark.relative = 0.6\n"
        )
        (self.folder / "plugins").write_text("[].\n")
        return os.environ | {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def start(self) -> None:
        if self._epmd is None:
            epmd = find_program("epmd")
            if epmd is None:
                raise ServerFailed("there is no epmd: is Erlang installed?")
            self._epmd = subprocess.Popen([epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"])
        super().start()

    def ready(self) -> bool:
        if not answers(self.port, _AMQP, b"\x01"):
            return False
        with _blocking(self.port):
            return True

    @property
    def pid(self) -> int:
        """The Erlang machine below the script that started it."""
        script = psutil.Process(super().pid)
        return next(each.pid for each in script.children(recursive=True) if each.name() == "beam.smp")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            below = psutil.Process(self._process.pid).children(recursive=True)
            for each in below:
                if each.is_running():
                    each.send_signal(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            psutil.wait_procs(below, timeout=10)

    def close(self) -> None:
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
        super().close()

    def setup(self) -> None:
        with _blocking(self.port) as connection:
            connection.channel().queue_declare(_QUEUE, durable=True, arguments={"x-queue-type": self._kind})


#: A consumer that comes while a queue is still being found after a restart is sometimes never sent anything.
_PATIENCE_S = 15.0


class RabbitClient(Client):
    """A connection whose event loop turns only inside of our calls."""

    def __init__(self, port: int) -> None:
        self._failed: BaseException | None = None
        self._channel: Any = None
        self._published = 0
        #: In order, as a dict keeps it.
        self._unconfirmed: dict[int, None] = {}
        self._arrived: deque[tuple[int, bytes]] = deque()
        self._ready = False
        self._connection = pika.SelectConnection(
            _parameters(port), self._on_open, on_open_error_callback=self._on_lost, on_close_callback=self._on_lost
        )
        self._loop = self._connection.ioloop
        self._loop.activate_poller()
        self._until(lambda: self._ready)

    def _on_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_lost)
        channel.confirm_delivery(self._on_confirm, callback=self._on_ready)

    def _on_ready(self, _frame: Any) -> None:
        self._ready = True

    def _on_lost(self, _what: Any, error: Any) -> None:
        self._failed = error if isinstance(error, BaseException) else RuntimeError(str(error))

    def _on_confirm(self, frame: Any) -> None:
        if not isinstance(frame.method, pika.spec.Basic.Ack):
            self._failed = RuntimeError("RabbitMQ refused a message")
        tag = frame.method.delivery_tag
        if frame.method.multiple:
            while self._unconfirmed and (oldest := next(iter(self._unconfirmed))) <= tag:
                del self._unconfirmed[oldest]
        else:
            self._unconfirmed.pop(tag, None)

    def _publish(self, payload: bytes) -> None:
        self._published += 1
        self._unconfirmed[self._published] = None
        self._channel.basic_publish("", _QUEUE, payload, _PERSISTENT)

    def _turn(self) -> None:
        self._loop.poll()
        self._loop.process_timeouts()
        if self._failed is not None:
            raise self._failed

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._turn()

    def _wait_for_messages(self) -> None:
        timer = self._loop.call_later(_PATIENCE_S, self._give_up)
        self._until(lambda: bool(self._arrived))
        self._loop.remove_timeout(timer)

    def _give_up(self) -> None:
        self._failed = TimeoutError(f"RabbitMQ delivered nothing for {_PATIENCE_S:g} s")

    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None:  # noqa: ARG002  a queue knows no tenants
        for number, payload in enumerate(payloads):
            self._publish(payload)
            if number % 100 == 99:
                self._turn()
                self._until(lambda: len(self._unconfirmed) < WINDOW)
        self._until(lambda: not self._unconfirmed)

    def send_one(self, payload: bytes) -> None:
        self._publish(payload)
        self._until(lambda: not self._unconfirmed)

    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        def post() -> None:
            self._publish(make())
            self._turn()

        def wait(seconds: float) -> None:
            timer = self._loop.call_later(seconds, lambda: None)
            self._turn()
            self._loop.remove_timeout(timer)

        late = pace(count, per_s, post, wait)
        self._until(lambda: not self._unconfirmed)
        return late

    def receive(self, take: Take) -> None:
        self._channel.basic_qos(prefetch_count=WINDOW)
        tag = self._channel.basic_consume(_QUEUE, self._on_message)
        more = True
        while more:
            if not self._arrived:
                self._wait_for_messages()
            batch = [self._arrived.popleft() for _ in range(min(BATCH, len(self._arrived)))]
            self._channel.basic_ack(batch[-1][0], multiple=True)
            more = take([payload for _, payload in batch])
        self._ready = False
        self._channel.basic_cancel(tag, callback=self._on_ready)
        self._until(lambda: self._ready)

    def _on_message(self, _channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self._arrived.append((method.delivery_tag, body))


def _parameters(port: int) -> pika.ConnectionParameters:
    return pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, socket_timeout=10)


def _blocking(port: int) -> pika.BlockingConnection:
    """A connection for what is not measured. Raises OSError while there is no broker."""
    try:
        return pika.BlockingConnection(_parameters(port))
    except pika.exceptions.AMQPError as error:
        time.sleep(0.1)
        raise OSError(str(error)) from error
