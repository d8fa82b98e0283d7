"""Which engines can keep a log, and opening the one that a URL names.

Add an engine: a row in `ENGINES`, an extra with its client in `pyproject.toml`, and a subject in
`tests/contract/logs.py`. A client is imported when a log of that engine is opened: a server does without the others.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from fila.replicas.address import OPTIONS, Address, BadAddress, parse
from fila.replicas.log import ReplicatedLog


class Engine(NamedTuple):
    """What keeps a log."""

    port: int
    """Where its servers listen by default"""
    options: frozenset[str]
    """What its URLs may say beside what all may"""
    open: Callable[[Address], Awaitable[ReplicatedLog]]


async def _postgres(address: Address) -> ReplicatedLog:
    from fila.replicas.postgres import PostgresLog

    return await PostgresLog.open(address)


async def _kafka(address: Address) -> ReplicatedLog:
    from fila.replicas.kafka import KafkaLog

    return await KafkaLog.open(address)


async def _nats(address: Address) -> ReplicatedLog:
    from fila.replicas.nats import NatsLog

    return await NatsLog.open(address)


ENGINES: Final[dict[str, Engine]] = {
    "kafka": Engine(9092, frozenset({"sasl"}), _kafka),
    "nats": Engine(4222, frozenset({"creds_file", "monitor"}), _nats),
    "postgres": Engine(5432, frozenset({"table"}), _postgres),
}
"""By the first word of the URL"""


async def open_log(url: str) -> ReplicatedLog:
    """Connect to the engine and check that it cannot lose what it acknowledges; a log that is not there is made.

    Raises BadAddress for a URL that is wrong, Unfit for an engine that is not set up safely, LogUnavailable.
    """
    address = parse(url, {name: engine.port for name, engine in ENGINES.items()})
    engine = ENGINES[address.engine]
    unknown = sorted(address.options.keys() - OPTIONS - engine.options)
    if unknown:
        known = ", ".join(sorted(OPTIONS | engine.options))
        raise BadAddress(f"a log on {address.engine} has no option {unknown[0]}: it may have {known}")
    _ = address.append_timeout_s, address.unsafe_one_copy, address.tls(), address.password()  # say now what is wrong
    try:
        return await engine.open(address)
    except ModuleNotFoundError as cause:
        raise BadAddress(
            f"a log on {address.engine} needs the package {cause.name}: pip install 'fila[server,{address.engine}]'"
        ) from cause
