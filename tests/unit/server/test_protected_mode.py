"""Protected mode: a server without security settings serves its own machine only."""

import asyncio

import pytest
from structlog.testing import capture_logs

from fila.config import ServerConfig
from fila.server.protected_mode import REFUSAL, ProtectedMode
from fila.wire import frames
from fila.wire.address import is_loopback
from fila.wire.method import Method
from fila.wire.server import Server
from tests.support.wire import GREETING, open_stream, parse

OURS = ("127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1")
OTHERS = ("192.0.2.7", "10.0.0.1", "0.0.0.0", "::", "fe80::1%eth0", "::ffff:192.0.2.7", "localhost", "", "127.0.0.1x")


def mode(*, insecure=False, has_credentials=False):
    return ProtectedMode(ServerConfig(insecure=insecure), lambda: has_credentials)


@pytest.mark.parametrize("address", OURS)
def test_an_address_of_this_machine_is_loopback(address):
    assert is_loopback(address)
    assert mode().refuse_peer(address) is None


@pytest.mark.parametrize("address", OTHERS)
def test_every_other_address_and_an_unknown_one_is_refused(address):
    assert not is_loopback(address)
    assert mode().refuse_peer(address) == REFUSAL


@pytest.mark.parametrize("settings", [{"insecure": True}, {"has_credentials": True}])
def test_credentials_or_the_setting_open_it(settings):
    assert mode(**settings).refuse_peer("192.0.2.7") is None


def test_the_first_key_opens_a_running_server():
    keys = []
    protected = ProtectedMode(ServerConfig(), lambda: bool(keys))
    assert protected.refuse_peer("192.0.2.7") == REFUSAL
    keys.append("first")
    assert protected.refuse_peer("192.0.2.7") is None


def test_the_refusal_is_one_sentence_that_names_the_settings():
    assert "." not in REFUSAL.replace("server.insecure", "").replace("tls.client_auth", "")
    for named in ("fila auth init", 'tls.client_auth = "required"', "server.insecure = true"):
        assert named in REFUSAL


@pytest.mark.parametrize(
    "settings,level", [({}, "info"), ({"insecure": True}, "warning"), ({"has_credentials": True}, None)]
)
def test_a_start_warns_of_an_open_server(settings, level):
    with capture_logs() as logs:
        mode(**settings).log_state()
    assert [entry["log_level"] for entry in logs] == ([level] if level else [])


class FakeTransport(asyncio.Transport):
    """As a TCP transport of a peer with this address."""

    def __init__(self, address):
        super().__init__({"peername": (address, 4321)})
        self.said = bytearray()
        self._closing = False

    def write(self, data):
        self.said += data

    def is_closing(self):
        return self._closing

    def close(self):
        self._closing = True

    abort = close


async def call(address):
    """The headers of the answer to a call of a peer with this address, and what the handler saw."""
    seen = []

    async def handler(request, _):
        seen.append(request)
        return request

    server = Server({"/s/M": Method(handler, bytes, bytes)}, refuse_peer=mode().refuse_peer)
    protocol = server._make_protocol()
    transport = FakeTransport(address)
    protocol.connection_made(transport)
    message = frames.frame(frames.DATA, frames.END_STREAM, 1, b"\0\0\0\0\1x")
    sent = GREETING + open_stream(1) + message
    protocol.get_buffer(-1)[: len(sent)] = sent
    protocol.buffer_updated(len(sent))
    for _ in range(5):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return bytes(transport.said), seen


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", ""])
def test_a_call_from_elsewhere_is_answered_with_a_status_and_reaches_no_handler(address):
    said, seen = asyncio.run(call(address))
    blocks = b"".join(payload for kind, _, stream, payload in parse(said) if kind == frames.HEADERS and stream == 1)
    assert b"grpc-status\x0216" in blocks
    assert REFUSAL[:40].encode() in blocks
    assert seen == []


def test_a_call_from_this_machine_is_served():
    _, seen = asyncio.run(call("127.0.0.1"))
    assert seen == [b"x"]
