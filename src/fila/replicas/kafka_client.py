"""What all clients of Kafka have in common: how they connect, and the threads that wait for librdkafka."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError

from fila.replicas.address import Address, BadAddress
from fila.replicas.log import LogUnavailable

T = TypeVar("T")

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PARTITION: Final = 0
SOCKET_TIMEOUT_MS = 5_000
"""A broker that says nothing for so long is asked no more: its machine has stopped"""


class Worker:
    """A thread that makes the calls of one client, one after the other.

    What librdkafka has to say it says inside of these calls: its own threads call nobody of ours.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "fila-kafka")

    async def run(self, call: Callable[[], T]) -> T:
        """Raises LogUnavailable after the end. A call that is not waited for any more is made to its end."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, call)
        except RuntimeError as cause:
            raise LogUnavailable("the log is closed") from cause
        return await future

    def end(self, last: Callable[[], object]) -> "asyncio.Future[object] | None":
        """Make one more call, after which the thread ends. None when it has ended before."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, last)
        except RuntimeError:
            return None
        self._thread.shutdown(wait=False)
        return future


def settings(address: Address, problem: Callable[[KafkaError], None]) -> dict[str, Any]:
    """The configuration of a client; `problem` hears of what is wrong with connections. Raises BadAddress."""
    tls = address.flag("tls")
    mechanism, password = address.options.get("sasl"), address.password()
    if (mechanism is None) != (address.user is None):
        raise BadAddress("a log on Kafka with a user needs the option sasl, and the other way round")
    if mechanism is not None and mechanism not in MECHANISMS:
        raise BadAddress(f"the option sasl of the log is {mechanism!r}: it may be {', '.join(MECHANISMS)}")
    if mechanism == "PLAIN" and not tls:
        raise BadAddress("the option sasl of the log is 'PLAIN', which shows the password: say tls=true as well")
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(address.servers),
        "client.id": "fila",
        "security.protocol": ("SASL_" if mechanism else "") + ("SSL" if tls else "PLAINTEXT"),
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "socket.nagle.disable": True,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "log_level": 0,  # what matters comes as an error
        "error_cb": problem,
    }
    if mechanism is not None:
        found |= {"sasl.mechanism": mechanism, "sasl.username": address.user, "sasl.password": password or ""}
    names = {"tls_ca": "ssl.ca.location", "tls_cert": "ssl.certificate.location", "tls_key": "ssl.key.location"}
    return found | {theirs: address.options[ours] for ours, theirs in names.items() if tls and ours in address.options}
