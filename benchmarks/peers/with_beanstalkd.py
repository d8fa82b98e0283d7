"""beanstalkd: its text protocol over a plain socket, pipelined. greenstalk and its like wait for an answer to
each command.
"""

import socket
import time
from collections.abc import Callable, Iterable

from benchmarks.peers.client import BATCH, Client, Take, batches, pace
from benchmarks.peers.server import Server, answers, find_program

_PUT = b"put 1024 0 3600 %d\r\n%s\r\n"


class BeanstalkdServer(Server):
    """Binlog, synced to the disk at most every 50 ms, as it comes."""

    def command(self) -> list[str]:
        program = find_program("beanstalkd")
        assert program is not None
        return [program, "-l", "127.0.0.1", "-p", str(self.port), "-b", str(self.folder)]

    def ready(self) -> bool:
        return answers(self.port, b"list-tube-used\r\n", b"USING")

    def setup(self) -> None:
        """The default tube is there."""


class BeanstalkdClient(Client):
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb", buffering=1 << 18)

    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None:  # noqa: ARG002  a tube knows no tenants
        # Two batches under way, so that the server always has work.
        unanswered = 0
        for batch in batches(payloads):
            self._socket.sendall(b"".join([_PUT % (len(payload), payload) for payload in batch]))
            self._inserted(unanswered)
            unanswered = len(batch)
        self._inserted(unanswered)

    def send_one(self, payload: bytes) -> None:
        self._socket.sendall(_PUT % (len(payload), payload))
        self._inserted(1)

    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        unanswered = 0

        def post() -> None:
            nonlocal unanswered
            payload = make()
            self._socket.sendall(_PUT % (len(payload), payload))
            unanswered += 1

        late = pace(count, per_s, post, time.sleep)
        self._inserted(unanswered)
        return late

    def receive(self, take: Take) -> None:
        """One `reserve` waits, and others behind it take what else is there: more of them while all find something."""
        deletes: list[bytes] = []
        more, extra = True, 0
        while more:
            self._socket.sendall(b"".join(deletes) + b"reserve\r\n" + b"reserve-with-timeout 0\r\n" * extra)
            self._deleted(len(deletes))
            deletes = []
            payloads: list[bytes] = []
            for _ in range(1 + extra):
                self._job(deletes, payloads)
            extra = min(2 * extra + 1, BATCH - 1) if len(payloads) == 1 + extra else len(payloads) - 1
            more = take(payloads)
        self._socket.sendall(b"".join(deletes))
        self._deleted(len(deletes))

    def _job(self, deletes: list[bytes], payloads: list[bytes]) -> None:
        line = self._answers.readline()
        if line.startswith(b"RESERVED"):
            _, number, size = line.split()
            payloads.append(self._answers.read(int(size) + 2)[:-2])
            deletes.append(b"delete %s\r\n" % number)
        elif line != b"TIMED_OUT\r\n":
            raise RuntimeError(f"beanstalkd answered {line!r}")

    def _inserted(self, count: int) -> None:
        for _ in range(count):
            if not (line := self._answers.readline()).startswith(b"INSERTED"):
                raise RuntimeError(f"beanstalkd answered {line!r}")

    def _deleted(self, count: int) -> None:
        for _ in range(count):
            if (line := self._answers.readline()) != b"DELETED\r\n":
                raise RuntimeError(f"beanstalkd answered {line!r}")
