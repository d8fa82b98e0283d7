"""Three members on an engine of three nodes: members and nodes are killed together, and nothing is lost or doubled."""

import asyncio

import pytest

from tests.e2e.members import Members, under_load
from tests.helpers.postgres import replicated_postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


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
    with Members(tmp_path, nodes, url) as members:

        async def scenario(load, owner):
            for node in nodes:
                node.kill()
                owner = await kill_owner(members, owner)
                await load.progress()
                node.start()
                await asyncio.to_thread(node.wait_until, node.ready)
                await load.progress()

        under_load(members, scenario)


def test_the_owner_is_killed_on_postgresql_with_a_standby(tmp_path):
    with replicated_postgres() as (primary, _):
        url = f"postgres://fila@127.0.0.1:{primary.port}/postgres"
        with Members(tmp_path, primary, url) as members:

            async def scenario(load, owner):
                for _ in range(2):
                    owner = await kill_owner(members, owner)
                    await load.progress()

            under_load(members, scenario)
