"""What only one of our ends can show: TLS, limits, peers that are none, and connections that go and come."""

import asyncio
import shutil
import ssl
import subprocess
from contextlib import suppress

import grpc
import pytest

from fila.wire import frames, headers, status
from fila.wire.address import split_address
from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server import Server
from fila.wire.status import RpcError, StatusCode
from fila.wire.tls_context import ClientTls
from tests.integration.wire.conftest import WAIT_S, Handlers, grpc_client, identity, own_client, own_server
from tests.support.wire import GREETING, message, open_stream, parse


async def refusal(call):
    with pytest.raises((RpcError, grpc.aio.AioRpcError)) as refused:
        await call
    return refused.value


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl, "openssl is needed to make a certificate"
    command = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run([openssl, *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


def tls_of_server(folder, protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.set_alpn_protocols(protocols)
    return lambda: context


def tls_of_client(folder):
    context = ssl.create_default_context(cafile=folder / "cert.pem")
    context.set_alpn_protocols(["h2"])
    return ClientTls(lambda: context)


class TestTls:
    async def test_our_client_and_gRPCs(self, certificate):  # noqa: N802
        async with own_server(Handlers(), tls=tls_of_server(certificate, ["h2"])) as (_, port):
            payload = bytes(2_000_000)
            async with own_client(port, tls=tls_of_client(certificate)) as channel:
                assert await channel.unary_unary("/t/echo")(payload) == payload
            credentials = grpc.ssl_channel_credentials((certificate / "cert.pem").read_bytes())
            async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
                assert await channel.unary_unary("/t/echo")(b"x") == b"x"

    async def test_a_server_that_does_not_offer_h2_is_left(self, certificate):
        served = own_server(Handlers(), tls=tls_of_server(certificate, ["http/1.1"]))
        async with served as (_, port), own_client(port, tls=tls_of_client(certificate)) as channel:
            assert (await refusal(channel.unary_unary("/t/echo")(b""))).code() is StatusCode.UNAVAILABLE

    async def test_a_handshake_that_fails_leaves_nothing_behind(self, certificate):
        async with own_server(Handlers(), tls=tls_of_server(certificate, ["h2"])) as (server, port):
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"no handshake at all")
                await reader.read()
                writer.close()
            async with asyncio.timeout(10):
                while server._protocols:  # until the peer's goodbye is read
                    await asyncio.sleep(0.01)

    async def test_plain_text_to_a_server_with_tls(self, certificate):
        served = own_server(Handlers(), tls=tls_of_server(certificate, ["h2"]))
        async with served as (_, port), own_client(port) as channel:
            error = await refusal(channel.unary_unary("/t/echo")(b""))
            assert error.code() is StatusCode.UNAUTHENTICATED
            assert error.details() == "this port accepts TLS connections only"


class TestConnections:
    async def test_nobody_is_there(self):
        async with own_client(1) as channel:
            error = await refusal(channel.unary_unary("/t/echo")(b""))
            assert error.code() is StatusCode.UNAVAILABLE
            assert "refused" in error.details()

    async def test_the_peer_speaks_something_else(self):
        async def answer(reader, writer):
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, own_client(server.sockets[0].getsockname()[1]) as channel:
            calls = [channel.unary_unary("/t/echo")(b"") for _ in range(3)]
            codes = {(await refusal(call)).code() for call in calls}
            assert codes == {StatusCode.UNAVAILABLE}

    async def test_the_peer_says_nothing(self):
        """It is given up after a while, not waited for."""

        async def listen(reader, writer):
            await reader.read()
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        async with server, own_client(server.sockets[0].getsockname()[1], keepalive=(0.1, 0.1)) as channel:
            error = await refusal(channel.unary_unary("/t/echo")(b""))
            assert error.code() is StatusCode.UNAVAILABLE

    async def test_a_peer_that_vanished_is_noticed(self):
        """It greets, and then there is silence."""

        async def greet(reader, writer):
            writer.write(frames.settings({}))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server, own_client(server.sockets[0].getsockname()[1], keepalive=(0.1, 0.1)) as channel:
            error = await refusal(channel.stream_stream("/t/echo_all")().read())
            assert error.code() is StatusCode.UNAVAILABLE

    async def test_a_quiet_peer_that_answers_pings_is_kept(self):
        async with own_server(Handlers()) as (_, port), own_client(port, keepalive=(0.05, 0.1)) as channel:
            call = channel.stream_stream("/t/echo_all")()
            await call.write(b"x")
            await call.read()

            async def asked_and_answered():
                while channel._current.connection.control.ping_acks < 3:
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(asked_and_answered(), WAIT_S)
            await call.write(b"y")
            assert await call.read() == b"y"

    async def test_a_server_that_comes_back_is_found(self):
        async with own_server(Handlers()) as (_, port), own_client(port) as channel:
            assert await channel.unary_unary("/t/echo")(b"x") == b"x"
        handlers = Handlers()
        server = Server({"/t/echo": Method(handlers.echo, identity, identity)})
        channel = Channel(f"127.0.0.1:{port}")
        assert (await refusal(channel.unary_unary("/t/echo")(b""))).code() is StatusCode.UNAVAILABLE
        await server.listen("127.0.0.1", port)
        assert await channel.unary_unary("/t/echo")(b"x") == b"x"
        await server.stop(0)
        await channel.close()

    async def test_calls_that_the_server_has_no_room_for_wait(self):
        limits = Limits(max_streams=5)
        async with own_server(Handlers(), limits) as (_, port), own_client(port) as channel:
            echo = channel.unary_unary("/t/echo")
            payloads = [b"%d" % number for number in range(200)]
            assert await asyncio.gather(*[echo(payload) for payload in payloads]) == payloads
        async with own_server(Handlers(), limits) as (_, port), grpc_client(port) as channel:
            echo = channel.unary_unary("/t/echo")
            assert await asyncio.gather(*[echo(payload) for payload in payloads]) == payloads

    async def test_a_call_may_be_given_up_while_it_waits_for_room(self):
        limits = Limits(max_streams=1)
        async with own_server(Handlers(), limits) as (_, port), own_client(port) as channel:
            first = channel.stream_stream("/t/echo_all")()
            await first.write(b"x")
            await first.read()
            error = await refusal(channel.unary_unary("/t/echo")(b"", timeout=0.1))
            assert error.code() is StatusCode.DEADLINE_EXCEEDED
            first.cancel()
            assert await channel.unary_unary("/t/echo")(b"y") == b"y"

    async def test_a_closed_channel_makes_no_calls(self):
        async with own_server(Handlers()) as (_, port):
            channel = Channel(f"127.0.0.1:{port}")
            waiting = asyncio.ensure_future(channel.unary_unary("/t/wait")(b""))
            await asyncio.sleep(0.1)
            await channel.close()
            for call in (waiting, channel.unary_unary("/t/echo")(b"")):
                with pytest.raises(asyncio.CancelledError):
                    await call

    async def test_no_address_at_all_is_refused_at_once(self):
        with pytest.raises(ValueError, match="host:port"):
            split_address("")
        with pytest.raises(ValueError, match="host:port"):
            Channel("")

    @pytest.mark.parametrize("address", ["host", "host:", "host:x", "host:99999"])
    async def test_what_is_no_address(self, address):
        with pytest.raises(ValueError, match="host:port"):
            split_address(address)
        channel = Channel(address)
        assert (await refusal(channel.unary_unary("/t/echo")(b""))).code() is StatusCode.UNAVAILABLE
        await channel.close()

    def test_addresses(self):
        assert split_address("[::1]:80") == ("::1", 80)
        assert split_address("localhost:5555") == ("localhost", 5555)


class TestAServerAndHostilePeers:
    async def hear(self, port, said):
        """What the server answers until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        heard = b""
        with suppress(ConnectionResetError):  # when more was said than the server cared to hear
            while more := await asyncio.wait_for(reader.read(1 << 16), WAIT_S):
                heard += more
        writer.close()
        return heard

    @pytest.mark.parametrize(
        "said, code",
        [
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", frames.PROTOCOL_ERROR),
            (GREETING + frames.frame(frames.PING, 0, 0, bytes(8)) * 1000, frames.ENHANCE_YOUR_CALM),
            (GREETING + frames.header(1 << 23, frames.DATA, 0, 1), frames.FRAME_SIZE_ERROR),
        ],
    )
    async def test_are_told_why_and_left(self, said, code):
        async with own_server(Handlers()) as (_, port):
            kind, _, _, payload = parse(await self.hear(port, said))[-1]
            assert (kind, int.from_bytes(payload[4:8], "big")) == (frames.GOAWAY, code)

    async def test_leave_nothing_behind_and_others_are_served(self):
        async with own_server(Handlers()) as (server, port), grpc_client(port) as channel:
            assert await channel.unary_unary("/t/echo")(b"x") == b"x"
            await self.hear(
                port, GREETING + b"".join(open_stream(n) + frames.rst_stream(n, 8) for n in range(1, 9999, 2))
            )
            assert await channel.unary_unary("/t/echo")(b"x") == b"x"

            async def only_ours():
                while len(server._protocols) > 1 or server._calls:
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(only_ours(), WAIT_S)

    async def test_who_does_not_greet_is_not_waited_for(self):
        handlers = Handlers()
        server = Server({"/t/echo": Method(handlers.echo, identity, identity)}, keepalive=(10, 0.1))
        port = await server.listen("127.0.0.1", 0)
        assert await self.hear(port, b"PRI")
        await server.stop(0)

    @pytest.mark.parametrize(
        "changed, expected",
        [
            ({b":method": b"GET"}, b"405"),
            ({b":method": b"PUT"}, b"405"),
            ({b"content-type": b"application/json"}, b"415"),
            ({b"content-type": b"application/grpc-web"}, b"415"),
            ({b"content-type": b"application/grpcx"}, b"415"),
        ],
    )
    async def test_a_request_that_is_no_grpc_is_refused_as_http_says(self, changed, expected):
        block = {b":method": b"POST", b":scheme": b"http", b":path": b"/t/echo", b"content-type": b"application/grpc"}
        async with own_server(Handlers()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GREETING + open_stream(1, headers.encode((block | changed).items()), end=True))
            said = b""
            while not any(kind == frames.HEADERS for kind, *_ in _whole_frames(said)):
                said += await asyncio.wait_for(reader.read(1 << 16), WAIT_S)
            ((flags, answer),) = [(flags, got) for kind, flags, _, got in _whole_frames(said) if kind == frames.HEADERS]
            assert dict(headers.HeaderDecoder(1000).decode(answer).headers)[b":status"] == expected
            assert flags & frames.END_STREAM
            writer.close()

    @pytest.mark.parametrize("content_type", [b"application/grpc+proto", b"application/grpc;charset=utf-8"])
    async def test_other_spellings_of_grpc_are_served(self, content_type):
        block = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/t/echo"), (b"content-type", content_type)]
        async with own_server(Handlers()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            sent = open_stream(1, headers.encode(block)) + frames.frame(frames.DATA, 1, 1, message(b"hello"))
            writer.write(GREETING + sent)
            said = b""
            while b"hello" not in said:
                said += await asyncio.wait_for(reader.read(1 << 16), WAIT_S)
            writer.close()

    async def test_metadata_beyond_the_limit_ends_one_call_and_the_others_go_on(self):
        async with own_server(Handlers()) as (_, port):
            for make in (grpc_client, own_client):
                async with make(port) as channel:
                    stream = channel.stream_stream("/t/echo_all")()
                    await stream.write(b"x")
                    assert await stream.read() == b"x"
                    large = channel.unary_unary("/t/echo")(b"", metadata=(("token", "x" * 20_000),))
                    error = await refusal(large)
                    assert error.code().name == "INVALID_ARGUMENT"
                    assert "16384" in error.details()
                    await stream.write(b"y")
                    assert await stream.read() == b"y"

    async def test_compressed_messages_are_refused_with_the_reason(self):
        async with own_server(Handlers()) as (_, port):
            options = [("grpc.default_compression_algorithm", 2)]
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
                error = await refusal(channel.unary_unary("/t/echo")(b"x" * 1000))
                assert error.code() is grpc.StatusCode.UNIMPLEMENTED
                assert "compressed" in error.details()

    async def test_a_call_without_a_request_is_refused(self):
        async with own_server(Handlers()) as (_, port), grpc_client(port) as channel:
            call = channel.stream_stream("/t/echo")()
            await call.done_writing()
            assert (await refusal(call.read())).code() is grpc.StatusCode.INTERNAL

    async def test_who_never_reads_makes_the_server_hold_little(self):
        """Its handler waits, and what it waits with is one response and what the transport took."""
        async with own_server(Handlers()) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            request = message(b"100000 100000")
            writer.write(
                GREETING
                + frames.settings({frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW})
                + frames.window_update(0, 1 << 30)
                + _open("/t/count")
                + frames.frame(frames.DATA, frames.END_STREAM, 1, request)
            )
            writer.transport.pause_reading()
            await asyncio.sleep(1)
            (protocol,) = server._protocols
            held = sum(map(len, protocol.connection.out)) + protocol.transport.get_write_buffer_size()
            assert protocol.connection.sender.paused
            assert held < 2 << 20
            writer.transport.abort()

    async def test_a_call_that_ends_inside_a_response_is_reset(self):
        """Trailers would come where the rest of the response belongs."""
        async with own_server(Handlers()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 3}) + _open("/t/echo_all"))
            writer.write(frames.frame(frames.DATA, 0, 1, message(b"hello")))
            said = b""
            while not any(kind == frames.DATA for kind, *_ in _whole_frames(said)):
                said += await reader.read(1000)
            writer.write(frames.frame(frames.DATA, 0, 1, b"\1\0\0\0\0"))  # compressed, which is refused
            while not any(kind == frames.RST_STREAM for kind, *_ in _whole_frames(said)):
                said += await reader.read(1000)
            ends = [(kind, flags & frames.END_STREAM) for kind, flags, stream, _ in _whole_frames(said) if stream == 1]
            assert (frames.HEADERS, frames.END_STREAM) not in ends
            writer.close()

    async def test_who_asks_on_and_on_and_never_reads_is_given_up(self):
        """Answers without messages do not wait for room, so they are counted."""
        async with own_server(Handlers()) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(GREETING)
            writer.transport.pause_reading()
            stream_ids = iter(range(1, 1 << 20, 2))

            async def ask_on():
                while not writer.transport.is_closing():
                    calls = [open_stream(next(stream_ids), b"", end=True) for _ in range(400)]
                    writer.write(b"".join(calls))
                    await asyncio.sleep(0.01)
                    held = sum(protocol.transport.get_write_buffer_size() for protocol in server._protocols)
                    assert held < 2 << 20
                    if not server._protocols:
                        return

            await asyncio.wait_for(ask_on(), WAIT_S)
            assert not server._protocols
            writer.transport.abort()

    async def test_a_connection_that_is_lost_as_soon_as_it_is_made_is_made_again(self, monkeypatch):
        """Before the one who made it is told that it is there."""
        connect = asyncio.get_running_loop().create_connection

        async def made_and_lost(*args, **options):
            transport, protocol = await connect(*args, **options)
            transport.abort()
            while not protocol.connection.closed:
                await asyncio.sleep(0)
            return transport, protocol

        async with own_server(Handlers()) as (_, port), own_client(port) as channel:
            monkeypatch.setattr(channel.loop, "create_connection", made_and_lost)
            error = await refusal(channel.unary_unary("/t/echo")(b"x", timeout=WAIT_S))
            assert error.code() is StatusCode.UNAVAILABLE
            monkeypatch.undo()
            assert await channel.unary_unary("/t/echo")(b"x", timeout=WAIT_S) == b"x"

    async def test_calls_that_wait_for_room_in_vain_keep_nothing(self):
        async with own_server(Handlers(), Limits(max_streams=1)) as (_, port), own_client(port) as channel:
            first = channel.stream_stream("/t/echo_all")()
            await first.write(b"x")
            await first.read()
            for _ in range(20):
                calls = [channel.unary_unary("/t/echo")(b"", timeout=0.001) for _ in range(50)]
                await asyncio.gather(*calls, return_exceptions=True)
            assert len(channel._waiting) < 300
            first.cancel()
            assert await channel.unary_unary("/t/echo")(b"y") == b"y"


def _whole_frames(said):
    """Those that are complete."""
    at = 0
    while len(said) - at >= frames.HEADER_BYTES:
        end = at + frames.HEADER_BYTES + int.from_bytes(said[at : at + 3], "big")
        if end > len(said):
            break
        at = end
    return parse(said[:at])


def _open(path):
    return open_stream(1, headers.encode(status.request_headers(path, "test")))
