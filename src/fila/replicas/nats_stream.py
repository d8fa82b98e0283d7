"""What a stream of NATS must be to keep a log: the checks, and making one."""

import asyncio
import json
from typing import Any, Final

from fila.replicas.address import Address, BadAddress
from fila.replicas.log import LogUnavailable, Unfit
from fila.replicas.nats_connection import NO_STREAM, ApiError, Connection

COPIES: Final = 3
MONITOR_TIMEOUT_S = 3.0
_UNLIMITED = ("max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size")
_OR_UNSAFE = "or say unsafe_one_copy=true for a log that may be lost"


def subject_of(stream: str) -> str:
    """What entries are published to"""
    return f"fila.log.{stream}"


async def prepare(connection: Connection, address: Address) -> None:
    """Make the stream if there is none, and check it and its servers. Raises Unfit, LogUnavailable."""
    try:
        info = await connection.question(f"STREAM.INFO.{address.name}")
    except ApiError as cause:
        if cause.code != NO_STREAM:
            raise LogUnavailable(f"JetStream: {cause}") from cause
        info = await _make(connection, address)
    _check_stream(info["config"], address)
    if not address.unsafe_one_copy:
        await _check_servers(info.get("cluster", {}), address)


async def _make(connection: Connection, address: Address) -> dict[str, Any]:
    config = {
        "name": address.name,
        "subjects": [subject_of(address.name)],
        "num_replicas": 1 if address.unsafe_one_copy else COPIES,
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "deny_delete": True,
        "max_age": 0,
    } | dict.fromkeys(_UNLIMITED, -1)
    try:
        return await connection.question(f"STREAM.CREATE.{address.name}", config)
    except ApiError as cause:
        raise Unfit(f"JetStream makes no stream with {config['num_replicas']} copies: {cause}; {_OR_UNSAFE}") from cause


def _check_stream(config: dict[str, Any], address: Address) -> None:
    wrong = None
    if config.get("num_replicas", 1) < COPIES and not address.unsafe_one_copy:
        wrong = f"it has {config.get('num_replicas', 1)} copies and not {COPIES}"
    elif config.get("storage") != "file":
        wrong = "it is kept in memory"
    elif config.get("subjects") != [subject_of(address.name)]:
        wrong = f"its subject is not {subject_of(address.name)}"
    elif config.get("retention") != "limits" or config.get("max_age") or config.get("mirror") or config.get("sources"):
        wrong = "it removes entries by itself, or takes them from elsewhere"
    elif limited := [name for name in _UNLIMITED if config.get(name, -1) > 0]:
        wrong = f"{limited[0]} limits it"
    if wrong is not None:
        raise Unfit(f"the stream {address.name} cannot keep a log: {wrong}; let Fila make it")


async def _check_servers(cluster: dict[str, Any], address: Address) -> None:
    monitors = [each for each in address.options.get("monitor", "").split(",") if each]
    if not monitors:
        raise Unfit(
            "NATS could lose what it acknowledges, unless its servers have sync_interval: always, which only their "
            f"monitoring shows: say monitor=HOST:PORT,... with the http port of each, {_OR_UNSAFE}"
        )
    answers = await asyncio.gather(*map(_sync_always, monitors))
    seen = dict(answer for answer in answers if answer is not None)
    members = {cluster.get("leader"), *(each.get("name") for each in cluster.get("replicas", ()))} - {None}
    unseen = members - seen.keys()
    unsafe = [name for name in members & seen.keys() if not seen[name]]
    if None not in answers:
        unsafe += unseen
    if unsafe:
        raise Unfit(
            f"NATS could lose what it acknowledges: {', '.join(sorted(unsafe))} has no sync_interval: always in its "
            f"section jetstream, or is not named by the option monitor; change that, {_OR_UNSAFE}"
        )
    if 2 * len(unseen) >= len(members):  # one that is down may be: a member has to start while it is
        raise LogUnavailable(f"the monitoring of most servers of NATS does not answer: {', '.join(monitors)}")


async def _sync_always(monitor: str) -> tuple[str, bool] | None:
    """The name of a server, and whether it syncs each write; None when it does not answer."""
    host, _, port = monitor.rpartition(":")
    if not host or not port.isdigit():
        raise BadAddress(f"the option monitor of the log names {monitor!r}: it may be host:port,host:port")
    try:
        async with asyncio.timeout(MONITOR_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(b"GET /varz HTTP/1.0\r\nHost: " + monitor.encode() + b"\r\n\r\n")
                _, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
        found = json.loads(body)
        return found["server_name"], found["jetstream"]["config"].get("sync_always") is True
    except (OSError, TimeoutError, ValueError, KeyError):
        return None
