"""A server runs on whatever keeps the contract of a store."""

from fila.storage.memory import MemoryStorage
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
