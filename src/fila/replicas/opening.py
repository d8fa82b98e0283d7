"""Which engines can keep a log, and opening the one that a URL names.

Add an engine: a row in `ENGINES`, an extra with its client in `pyproject.toml`, and a subject in
`tests/contract/logs.py`. A client is imported when a log of that engine is opened: a server does without the others.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, NamedTuple

from fila.replicas.address import OPTIONS, TABLE, Address, BadAddress, parse
from fila.replicas.log import ReplicatedLog


class Engine(NamedTuple):
    """What keeps a log."""

    port: int
    """Where its servers listen by default"""
    options: frozenset[str]
    """What its URLs may say beside what all may"""
    named_by: str | None
    """The option that names the log; None where the path of the URL does"""
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
    "kafka": Engine(9092, frozenset({"sasl"}), None, _kafka),
    "nats": Engine(4222, frozenset({"creds_file", "monitor"}), None, _nats),
    "postgres": Engine(5432, frozenset({"table"}), "table", _postgres),
}
"""By the first word of the URL"""


async def open_log(url: str, beside: str = "") -> ReplicatedLog:
    """Connect to the engine and check that it cannot lose what it acknowledges; a log that is not there is made.

    `beside`: open another log beside the one that the URL names; letters and digits that are added to its name.

    Raises BadAddress for a URL that is wrong, Unfit for an engine that is not set up safely, LogUnavailable.
    """
    address = parse(url, {name: engine.port for name, engine in ENGINES.items()})
    engine = ENGINES[address.engine]
    unknown = sorted(address.options.keys() - OPTIONS - engine.options)
    if unknown:
        known = ", ".join(sorted(OPTIONS | engine.options))
        raise BadAddress(f"a log on {address.engine} has no option {unknown[0]}: it may have {known}")
    _ = address.append_timeout_s, address.unsafe_one_copy, address.tls(), address.password()  # say now what is wrong
    if beside:
        address = _beside(address, engine.named_by, beside)
    try:
        return await engine.open(address)
    except ModuleNotFoundError as cause:
        raise BadAddress(
            f"a log on {address.engine} needs the package {cause.name}: pip install 'fila[server,{address.engine}]'"
        ) from cause


def _beside(address: Address, named_by: str | None, addition: str) -> Address:
    if named_by is None:
        return replace(address, name=f"{address.name}_{addition}")
    name = f"{address.options.get(named_by, TABLE)}_{addition}"
    return replace(address, options={**address.options, named_by: name})
