"""Three members on an engine of three nodes: members and nodes are killed together, and nothing is lost or doubled."""

import asyncio

import pytest

from fila import AsyncClient
from tests.e2e.load import Load
from tests.e2e.members import Members
from tests.helpers.postgres import replicated_postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(members, scenario):
    """A load on the members while the scenario goes on; then the books, and every copy byte for byte."""

    async def under_load():
        owner = await asyncio.to_thread(members.start)
        async with AsyncClient(members.addr, timeout=60) as client:
            await client.create_queue("q", fairness_header="tenant", visibility_timeout_ms=5_000)
        load = Load(members.addr, "q")
        async with load.running():
            await load.progress()
            await scenario(load, owner)
            await load.progress()
        load.check(connections_lost=True)
        print(f"confirmed {len(load.ids)}, acked {len(load.acked)}")

    try:
        asyncio.run(under_load())
        first, *others = members.copies().values()
        assert first
        assert all(other == first for other in others)
    except BaseException:
        for name, server in members.servers.items():
            print(f"--- {name}\n{server.log[-4000:]}")
        raise
    finally:
        members.close()


async def kill_owner(members, owner):
    """And start it again as a standby. Returns who follows."""
    members.servers[owner].kill()
    follower = await asyncio.to_thread(members.owner, besides=[owner])
    count = members.events(owner).count("listening")
    members.servers[owner].launch()
    await asyncio.to_thread(members.until_logged, owner, "listening", count + 1)
    return follower


def test_the_owner_and_a_node_are_killed_together(engine, tmp_path):
    """Each node in turn, so the leader of the log is among them."""
    nodes, url = engine
    members = Members(tmp_path, nodes, url)

    async def scenario(load, owner):
        for node in nodes:
            node.kill()
            owner = await kill_owner(members, owner)
            await load.progress()
            node.start()
            await asyncio.to_thread(node.wait_until, node.ready)
            await load.progress()

    run(members, scenario)


def test_the_owner_is_killed_on_postgresql_with_a_standby(tmp_path):
    with replicated_postgres() as (primary, _):
        members = Members(tmp_path, primary, f"postgres://fila@127.0.0.1:{primary.port}/postgres")

        async def scenario(load, owner):
            for _ in range(2):
                owner = await kill_owner(members, owner)
                await load.progress()

        run(members, scenario)
