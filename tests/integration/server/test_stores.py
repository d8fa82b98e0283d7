"""A server runs on whatever keeps the contract of a store."""

from fila.storage.memory import MemoryStorage
from fila.v1 import admin_pb2
from tests.integration.server.conftest import serving, take


async def test_a_server_on_the_store_in_memory(tmp_path):
    """Nothing in the server needs RocksDB by name: a message goes the whole way."""
    data_dir = tmp_path / "data"
    async with serving(data_dir, open_store=lambda _: MemoryStorage()) as peer:
        await peer.create()
        sent = await peer.send(b"hello")
        [message] = await take(peer.lease(), 1)
        assert (message.id, message.payload) == (sent, b"hello")
    assert not data_dir.exists()


async def test_the_setting_chooses_the_store_and_the_server_says_what_a_write_survives(tmp_path):
    data_dir = tmp_path / "data"
    async with serving(data_dir, storage={"store": "memory"}) as peer:
        await peer.create()
        sent = await peer.send(b"hello")
        [message] = await take(peer.lease(), 1)
        assert (message.id, message.payload) == (sent, b"hello")
        told = await peer.admin.DescribeServer(admin_pb2.DescribeServerRequest())
        assert told.store.durability == admin_pb2.DURABILITY_UNSPECIFIED
    assert not data_dir.exists()
