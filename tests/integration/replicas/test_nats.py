"""What a log on NATS refuses, and how it connects."""

import asyncio
import secrets
from contextlib import asynccontextmanager

import nats
import pytest
from nats.js.api import StorageType, StreamConfig

from fila.replicas.address import BadAddress
from fila.replicas.log import LogUnavailable, Unfit
from fila.replicas.opening import open_log
from tests.support.certificates import Authority
from tests.support.engines import nats_servers

GOOD = {"max_age": 0, "storage": StorageType.FILE}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with nats_servers(tmp_path_factory.mktemp("nats"), 1) as [node]:
        yield node


@asynccontextmanager
async def opened(url):
    log = await open_log(url)
    try:
        yield log
    finally:
        await log.close()


async def test_a_single_server_is_unfit(node):
    with pytest.raises(Unfit, match=r"makes no stream with 3 copies.*unsafe_one_copy=true"):
        await open_log(f"nats://{node.addr}/single")


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"storage": StorageType.MEMORY}, "it is kept in memory"),
        ({"max_age": 60}, "removes entries by itself"),
        ({"max_msgs": 10}, "max_msgs limits it"),
        ({"max_bytes": 1000}, "max_bytes limits it"),
        ({"max_msg_size": 1000}, "max_msg_size limits it"),
        ({"max_msgs_per_subject": 5}, "max_msgs_per_subject limits it"),
        ({"subjects": ["elsewhere"]}, "its subject is not fila.log."),
    ],
)
async def test_a_stream_that_would_lose_entries_is_unfit(node, settings, text):
    name = f"stream_{secrets.token_hex(4)}"
    client = await nats.connect(f"nats://{node.addr}")
    await client.jetstream().add_stream(
        StreamConfig(**{"name": name, "subjects": [f"fila.log.{name}"]} | GOOD | settings)
    )
    await client.close()
    with pytest.raises(Unfit, match=text):
        await open_log(f"nats://{node.addr}/{name}?unsafe_one_copy=true")


async def test_a_stream_with_one_copy_that_is_there_already_is_unfit(node):
    async with opened(f"nats://{node.addr}/one?unsafe_one_copy=true"):
        pass
    with pytest.raises(Unfit, match="it has 1 copies and not 3"):
        await open_log(f"nats://{node.addr}/one")


async def test_a_stream_that_was_deleted_ends_its_readers(node):
    async with opened(f"nats://{node.addr}/gone?unsafe_one_copy=true") as log:
        client = await nats.connect(f"nats://{node.addr}")
        await client.jetstream().delete_stream("gone")
        await client.close()
        with pytest.raises(LogUnavailable, match="no stream gone any more"):
            async with asyncio.timeout(60):
                await anext(log.read(0))


async def test_a_name_with_a_dot_is_refused(node):
    with pytest.raises(BadAddress, match="has no dot"):
        await open_log(f"nats://{node.addr}/a.b?unsafe_one_copy=true")


async def test_a_user_has_a_password(tmp_path, monkeypatch):
    with nats_servers(tmp_path, 1, 'authorization { user: fila, password: "rightpassword" }') as [node]:
        url = f"nats://fila@{node.addr}/log?unsafe_one_copy=true"
        monkeypatch.setenv("FILA_LOG_PASSWORD", "rightpassword")
        async with opened(url) as log:
            assert await log.append(b"x", -1) == 0
        monkeypatch.setenv("FILA_LOG_PASSWORD", "wrongpassword")
        with pytest.raises(Unfit, match="uthorization") as error:
            await open_log(url)
        assert "wrongpassword" not in str(error.value)


async def test_a_password_alone_is_a_token(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the-token\n")
    with nats_servers(tmp_path, 1, "authorization { token: the-token }") as [node]:
        async with opened(f"nats://{node.addr}/log?unsafe_one_copy=true&password_file={secret}") as log:
            assert await log.end() == 0


async def test_tls_checks_the_server(tmp_path):
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair = authority.server()
    with nats_servers(tmp_path, 1, f'tls {{ cert_file: "{pair.cert}", key_file: "{pair.key}" }}') as [node]:
        url = f"nats://{node.addr}/log?unsafe_one_copy=true&tls=true&tls_ca="
        async with opened(url + authority.ca) as log:
            assert await log.append(b"x", -1) == 0
        with pytest.raises(LogUnavailable, match="certificate"):
            await open_log(url + other.ca)


async def test_a_server_without_tls_is_not_spoken_to_in_the_clear(node, tmp_path):
    with pytest.raises(LogUnavailable, match="does not offer TLS"):
        await open_log(f"nats://{node.addr}/log?unsafe_one_copy=true&tls=true&tls_ca={Authority(tmp_path).ca}")
