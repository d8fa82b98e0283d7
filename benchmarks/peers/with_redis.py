"""Redis Streams: redis-py with hiredis. XADD in pipelines; XACK and XDEL of a batch go out with the next XREADGROUP.

Acked entries are deleted as well: a stream keeps them otherwise, and grows for ever.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from redis import Redis

from benchmarks.peers.client import BATCH, Client, Take, batches, pace
from benchmarks.peers.server import Server, answers, find_program

_STREAM, _GROUP, _CONSUMER = "bench", "workers", "one"


class RedisServer(Server):
    """Append-only file, no snapshots."""

    def __init__(self, fsync: str) -> None:
        super().__init__()
        self._fsync = fsync

    def command(self) -> list[str]:
        program = find_program("redis-server")
        assert program is not None
        return [
            *[program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""],
            *["--appendonly", "yes", "--appendfsync", self._fsync],
        ]

    def ready(self) -> bool:
        return answers(self.port, b"PING\r\n", b"+PONG")

    def setup(self) -> None:
        with Redis(port=self.port) as redis:
            redis.xgroup_create(_STREAM, _GROUP, id="0", mkstream=True)


class RedisClient(Client):
    def __init__(self, port: int) -> None:
        self._redis = Redis(port=port, socket_timeout=600)
        self._redis.ping()

    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None:  # noqa: ARG002  a stream knows no tenants
        for batch in batches(payloads):
            pipeline = self._redis.pipeline(transaction=False)
            for payload in batch:
                pipeline.execute_command("XADD", _STREAM, "*", "p", payload)
            pipeline.execute()

    def send_one(self, payload: bytes) -> None:
        self._redis.execute_command("XADD", _STREAM, "*", "p", payload)

    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        connection = self._redis.connection_pool.get_connection()
        unanswered = 0

        def post() -> None:
            nonlocal unanswered
            connection.send_command("XADD", _STREAM, "*", "p", make())
            unanswered += 1
            while unanswered and connection.can_read(0):
                connection.read_response()
                unanswered -= 1

        late = pace(count, per_s, post, time.sleep)
        for _ in range(unanswered):
            connection.read_response()
        return late

    def receive(self, take: Take) -> None:
        ids: list[bytes] = []
        more = True
        while more:
            pipeline = self._redis.pipeline(transaction=False)
            self._settle(pipeline, ids)
            pipeline.execute_command(
                *["XREADGROUP", "GROUP", _GROUP, _CONSUMER, "COUNT", BATCH, "BLOCK", 0, "STREAMS", _STREAM, ">"]
            )
            entries = _entries(pipeline.execute()[-1])
            ids = [entry[0] for entry in entries]
            more = take([_payload(entry[1]) for entry in entries])
        pipeline = self._redis.pipeline(transaction=False)
        self._settle(pipeline, ids)
        pipeline.execute()

    @staticmethod
    def _settle(pipeline: Redis, ids: list[bytes]) -> None:
        if ids:
            pipeline.execute_command("XACK", _STREAM, _GROUP, *ids)
            pipeline.execute_command("XDEL", _STREAM, *ids)


def _entries(answer: Any) -> list[tuple[bytes, object]]:
    """The entries of our one stream, in either form in which redis-py hands them over."""
    if isinstance(answer, dict):
        [of_stream] = answer.values()
        nested = len(of_stream) == 1 and of_stream[0] and isinstance(of_stream[0], list)
        return list(of_stream[0] if nested else of_stream)
    [(_, entries)] = answer
    return list(entries)


def _payload(fields: Any) -> bytes:
    payload: bytes = fields[b"p"] if isinstance(fields, dict) else fields[1]
    return payload
