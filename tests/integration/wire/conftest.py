"""One set of handlers behind either server, for either client."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import grpc
import pytest

from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server import Server
from fila.wire.server_call import ServerCall
from fila.wire.status import StatusCode
from fila.wire.stream import EOF

WAIT_S = 30
LARGEST = 12 << 20
ENDS = (EOF, grpc.aio.EOF)
OPTIONS = [("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", -1)]


class Handlers:
    """What the calls of these tests do. Written for the context that both servers have in common."""

    def __init__(self):
        self.seen = []
        self.cancelled = asyncio.Event()

    async def echo(self, request, context):
        return request

    async def length(self, request, context):
        return str(len(request)).encode()

    async def echo_all(self, _, context):
        while (request := await context.read()) not in ENDS:
            await context.write(request)

    async def count(self, request, context):
        """As many responses as the request says, each of so many bytes."""
        number, size = map(int, request.split())
        for _ in range(number):
            await context.write(bytes(size))

    async def wait(self, request, context):
        self.seen.append(context.time_remaining())
        try:
            await context.send_initial_metadata(())
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def refuse(self, request, context):
        code = own_code(context, grpc.StatusCode.FAILED_PRECONDITION)
        await context.abort(code, request.decode(), (("why", "so"), ("raw-bin", b"\0\xff")))

    async def refuse_late(self, request, context):
        await context.write(b"first")
        await context.abort(own_code(context, grpc.StatusCode.ABORTED), "half-way")

    async def metadata(self, request, context):
        got = {key: value for key, value in context.invocation_metadata() if key.startswith("my-")}
        await context.send_initial_metadata((("head", "er"),))
        context.set_trailing_metadata((("trail", "er"), ("got-bin", got["my-bin"])))
        return got["my-text"].encode()

    async def fail(self, request, context):
        raise ValueError("secret")

    def streams(self):
        """By name: takes a stream, gives a stream."""
        return {
            "echo": (False, False),
            "length": (False, False),
            "echo_all": (True, True),
            "count": (False, True),
            "wait": (False, True),
            "refuse": (False, False),
            "refuse_late": (False, True),
            "metadata": (False, False),
            "fail": (False, False),
        }


def own_code(context, code):
    """A status code as the server of a context has it."""
    return StatusCode.of(code.value[0]) if isinstance(context, ServerCall) else code


def identity(message):
    return message


@asynccontextmanager
async def own_server(handlers, limits=None, **options):
    methods = {
        f"/t/{name}": Method(getattr(handlers, name), identity, identity, takes_stream=takes, gives_stream=gives)
        for name, (takes, gives) in handlers.streams().items()
    }
    server = Server(methods, limits or Limits(max_message_bytes=LARGEST))
    port = await server.listen("127.0.0.1", 0, **options)
    try:
        yield server, port
    finally:
        await server.stop(0)


@asynccontextmanager
async def grpc_server(handlers):
    server = grpc.aio.server(options=OPTIONS)
    made = {}
    for name, (takes, gives) in handlers.streams().items():
        kind = f"{'stream' if takes else 'unary'}_{'stream' if gives else 'unary'}"
        made[name] = getattr(grpc, f"{kind}_rpc_method_handler")(getattr(handlers, name))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t", made),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield server, port
    finally:
        await server.stop(0)


@asynccontextmanager
async def own_client(port, **options):
    channel = Channel(f"127.0.0.1:{port}", **({"limits": Limits(max_message_bytes=LARGEST)} | options))
    try:
        yield channel
    finally:
        await channel.close()


def grpc_client(port):
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)


SERVERS = {"own": own_server, "grpc": grpc_server}
CLIENTS = {"own": own_client, "grpc": grpc_client}


@pytest.fixture(params=["own-own", "own-grpc", "grpc-own", "grpc-grpc"])
def peers(request):
    """A server and a client of every kind: what holds for gRPC's own pair must hold for ours."""
    server_kind, client_kind = request.param.split("-")

    @asynccontextmanager
    async def connect():
        handlers = Handlers()
        async with SERVERS[server_kind](handlers) as (server, port), CLIENTS[client_kind](port) as channel:
            yield SimpleNamespace(
                channel=channel, handlers=handlers, server=server, port=port, kinds=(server_kind, client_kind)
            )

    return connect
