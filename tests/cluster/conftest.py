"""Engines of three nodes, set up as the documentation says."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fila.replicas.log import LogUnavailable
from fila.replicas.opening import open_log
from tests.support.engines import Node, kafka_brokers, nats_servers

START_S = 120


@contextmanager
def _kafka(folder: Path) -> Iterator[tuple[list[Node], str]]:
    with kafka_brokers(folder, 3) as nodes:
        hosts = ",".join(node.addr for node in nodes)
        yield nodes, f"kafka://{hosts}/log?append_timeout_ms=20000"


@contextmanager
def _nats(folder: Path) -> Iterator[tuple[list[Node], str]]:
    with nats_servers(folder, 3) as nodes:
        hosts = ",".join(node.addr for node in nodes)
        monitors = ",".join(node.monitor for node in nodes)
        yield nodes, f"nats://{hosts}/log?append_timeout_ms=15000&monitor={monitors}"


ENGINES = {"kafka": _kafka, "nats": _nats}


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    """The nodes, and the URL of an empty log."""
    folder = tmp_path / "engine"
    with ENGINES[request.param](folder) as (nodes, url):
        asyncio.run(_until_it_serves(url))
        yield nodes, url


async def _until_it_serves(url):
    async with asyncio.timeout(START_S):
        while True:
            with suppress(LogUnavailable):
                log = await open_log(url)
                return await log.close()
