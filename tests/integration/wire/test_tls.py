"""TLS on the wire: who shows which certificate, and what a handler learns of it."""

import asyncio
import socket
import ssl
import time

import grpc
import pytest

from fila.wire.channel import Channel
from fila.wire.method import Method
from fila.wire.protocol import ALPN
from fila.wire.server import Server
from fila.wire.status import TlsFailed
from fila.wire.tls_context import ClientTls, Identity, client_context, server_context
from tests.support.certificates import Authority, grpc_credentials

NO_HELLO = b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"
"""A server's greeting, from a client."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Served:
    """A server that notes the certificates of its callers."""

    def __init__(self, context):
        self.seen = []
        self.server = Server({"/t/who": Method(self._who, bytes, bytes)})
        self._context = context

    async def _who(self, request, call):
        self.seen.append(call.peer_certificate)
        assert call.peer_address == "127.0.0.1"
        return request

    async def __aenter__(self):
        self.port = await self.server.listen("127.0.0.1", 0, lambda: self._context)
        return self

    async def __aexit__(self, *_):
        await self.server.stop(0)


def context(authority, client_auth="none", **rest):
    ca = "" if client_auth == "none" else authority.ca
    return server_context(Identity(*authority.server()), client_ca=ca, client_auth=client_auth, alpn=ALPN, **rest)


async def call(port, authority, pair=None, payload=b"x", **rest):
    made = client_context(ca=authority.ca, identity=pair and Identity(*pair), alpn=ALPN)
    channel = Channel(f"127.0.0.1:{port}", tls=ClientTls(lambda: made, **rest))
    try:
        return await channel.unary_unary("/t/who")(payload, timeout=10)
    finally:
        await channel.close()


async def test_a_handler_knows_the_verified_names_of_its_caller(authority):
    pair = authority.client("billing", uri="spiffe://example/billing")
    async with Served(context(authority, "required")) as served:
        await call(served.port, authority, pair)
        [seen] = served.seen
        assert seen.common_name == "billing"
        assert seen.subject == (("commonName", "billing"),)
        assert seen.issuer == (("commonName", "ca"),)
        assert seen.alt_names("DNS") == ("billing.example",)
        assert seen.alt_names("URI") == ("spiffe://example/billing",)
        assert len(seen.fingerprint) == 64
        assert seen.not_after > 0


async def test_grpc_clients_show_theirs_too(authority):
    credentials = grpc_credentials(authority, authority.client("reports"))
    async with Served(context(authority, "required")) as served:
        async with grpc.aio.secure_channel(f"localhost:{served.port}", credentials) as channel:
            assert await channel.unary_unary("/t/who")(b"x") == b"x"
        assert [seen.common_name for seen in served.seen] == ["reports"]


@pytest.mark.parametrize("client_auth", ["none", "optional"])
async def test_without_a_certificate_there_are_no_names(authority, client_auth):
    async with Served(context(authority, client_auth)) as served:
        assert await call(served.port, authority) == b"x"
        assert served.seen == [None]


async def test_a_certificate_that_nobody_asks_for_is_not_looked_at(authority):
    async with Served(context(authority)) as served:
        await call(served.port, authority, authority.client())
        assert served.seen == [None]


@pytest.mark.parametrize("min_version", ["1.2", "1.3"])
@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 3_000_000])
async def test_messages_of_any_size_pass(authority, size, min_version):
    payload = bytes(range(256)) * (size // 256 + 1)
    async with Served(context(authority, min_version=min_version)) as served:
        assert await call(served.port, authority, payload=payload[:size]) == payload[:size]


async def test_a_missing_client_certificate_is_told_at_once(authority):
    async with Served(context(authority, "required")) as served:
        with pytest.raises(TlsFailed, match="requires a client certificate"):
            await call(served.port, authority)
        assert served.seen == []


def _write_on_then_read(port, authority):
    """A client that learns only after writing that it was refused, as grpc-go does."""
    made = client_context(ca=authority.ca, identity=None, alpn=ALPN)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as tcp,
        made.wrap_socket(tcp, server_hostname="localhost") as connection,
    ):
        for _ in range(5):
            time.sleep(0.02)  # the server has refused it by now, and closed if it does not linger
            connection.sendall(b"x" * 1_000)
        return connection.recv(1)


async def test_the_alert_reaches_a_client_that_goes_on_writing(authority):
    async with Served(context(authority, "required")) as served:
        with pytest.raises(ssl.SSLError, match="certificate required"):
            await asyncio.to_thread(_write_on_then_read, served.port, authority)


def _never_close(port):
    """Breaks the rules of TLS, then keeps the connection open. Returns what it was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as tcp:
        tcp.sendall(NO_HELLO)
        got = b""
        while chunk := tcp.recv(100):
            got += chunk
        while True:
            time.sleep(0.05)
            tcp.sendall(b"x")


async def test_a_peer_that_stays_after_its_alert_is_cut(authority):
    async with Served(context(authority)) as served:
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(_never_close, served.port)


def _pump(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as tcp:
        tcp.sendall(NO_HELLO)
        for _ in range(10_000):
            tcp.sendall(bytes(64 << 10))


async def test_what_is_dropped_after_an_alert_is_bounded_in_bytes(authority, monkeypatch):
    monkeypatch.setattr("fila.wire.tls_layer.LINGER_S", 3_600)
    async with Served(context(authority)) as served:
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(_pump, served.port)


async def test_the_host_name_is_checked(authority):
    async with Served(context(authority)) as served:
        assert await call(served.port, authority, server_name="localhost") == b"x"
        with pytest.raises(TlsFailed, match=r"'broker.example' is for another host name"):
            await call(served.port, authority, server_name="broker.example")
