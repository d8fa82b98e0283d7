"""Starting, stopping and starting again."""

import asyncio
import subprocess
import sys

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from fila.core.errors import StoreLocked
from fila.server.app import Server
from fila.v1 import service_pb2
from tests.integration.server.conftest import WAIT_S, settings, take
from tests.support.packing import reads_of


def connect(server):
    return grpc.aio.insecure_channel(f"127.0.0.1:{server.port}")


async def status_of(stream):
    """The status with which a stream ends, however it ends."""
    try:
        while await asyncio.wait_for(stream.read(), WAIT_S) is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return await stream.code()


class TestAGracefulStop:
    async def test_ends_open_streams_with_unavailable_and_does_not_wait_for_them(self, serve):
        async with serve(server={"shutdown_grace_ms": 60_000}) as peer:
            await peer.create()
            await peer.send()
            streams = [peer.lease(), peer.hot.EnqueueStream(), peer.hot.Settle()]
            await take(streams[0], 1)
            await streams[1].write(service_pb2.EnqueueBatchRequest(queue="q", sequence=1))
            await streams[2].write(service_pb2.SettleRequest(sequence=1))
            for stream in streams[1:]:
                assert (await stream.read()).sequence == 1
            ends = [asyncio.ensure_future(status_of(stream)) for stream in streams]
            await asyncio.wait_for(peer.server.stop(), 20)
            assert await asyncio.gather(*ends) == [StatusCode.UNAVAILABLE] * 3
            await peer.server.start()  # for the fixture, which stops it again

    async def test_answers_what_it_accepted_and_keeps_it(self, serve, tmp_path):
        accepted: set[str] = set()
        async with serve() as peer:
            await peer.create()
            stream = peer.hot.EnqueueStream()

            async def write():
                sequence = 0
                while True:
                    sequence += 1
                    messages = [service_pb2.EnqueueRequest(payload=b"%d" % sequence)] * 5
                    await stream.write(
                        service_pb2.EnqueueBatchRequest(
                            messages=messages, queue="q", producer_id="p", sequence=sequence
                        )
                    )

            async def listen():
                while (answer := await stream.read()) is not grpc.aio.EOF:
                    accepted.update(result.message_id for result in answer.results)

            writing, listening = asyncio.ensure_future(write()), asyncio.ensure_future(listen())
            while len(accepted) < 200:
                await asyncio.sleep(0.005)
            await peer.server.stop()
            # With which status a stream ends while it is being written to is up to gRPC's client; it does end.
            for ended in await asyncio.gather(writing, listening, return_exceptions=True):
                assert isinstance(ended, grpc.aio.AioRpcError | asyncio.InvalidStateError)
            await peer.server.start()
        async with serve() as peer:
            stored = (await peer.summary()).depth
            assert stored >= len(accepted) >= 200
            delivered = {message.id for message in await take(peer.lease(max_in_flight=60_000), stored)}
            assert accepted <= delivered

    async def test_says_at_once_that_it_no_longer_serves(self, serve):
        async with serve(server={"shutdown_grace_ms": 3_600_000}) as peer:
            await peer.create()
            health = health_pb2_grpc.HealthStub(peer.channel)
            watch = health.Watch(health_pb2.HealthCheckRequest())
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            stopping = asyncio.ensure_future(peer.server.stop())
            assert (await asyncio.wait_for(watch.read(), WAIT_S)).status == health_pb2.HealthCheckResponse.NOT_SERVING
            await asyncio.wait_for(stopping, WAIT_S)  # it does not wait for whoever only watches
            assert await watch.code() is StatusCode.UNAVAILABLE
            await peer.server.start()

    async def test_waits_for_nobody_who_only_watches_or_reflects(self, serve):
        async with serve(server={"shutdown_grace_ms": 3_600_000}) as peer:
            health = health_pb2_grpc.HealthStub(peer.channel)
            watches = [health.Watch(health_pb2.HealthCheckRequest(service=name)) for name in ("", "fila.v1.FilaAdmin")]
            for watch in watches:
                await watch.read()
            reflection = reflection_pb2_grpc.ServerReflectionStub(peer.channel).ServerReflectionInfo()
            await reflection.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            await reflection.read()
            await asyncio.wait_for(peer.server.stop(), WAIT_S)
            await peer.server.start()

    async def test_does_not_wait_for_ever_for_a_consumer_that_does_not_read(self, serve):
        async with serve(server={"shutdown_grace_ms": 300}) as peer:
            await peer.create()
            await peer.send_many(100, bytes(100_000))
            slow = peer.lease(max_in_flight=100)
            await slow.initial_metadata()
            await asyncio.sleep(0.1)
            await asyncio.wait_for(peer.server.stop(), WAIT_S)
            slow.cancel()
            await peer.server.start()

    async def test_leases_outlive_it(self, serve):
        async with serve() as peer:
            await peer.create()
            await peer.send()
            (message,) = await take(peer.lease(), 1)
        async with serve() as peer:
            assert (await peer.summary()).in_flight == 1
            lease_id = message.metadata.lease_id
            await peer.hot.Ack(service_pb2.AckRequest(queue="q", message_id=message.id, lease_id=lease_id))
            assert (await peer.summary()).in_flight == 0

    async def test_logs_no_failure(self, serve):
        with capture_logs() as logs:
            async with serve() as peer:
                await peer.create(visibility_timeout_ms=1)
                await peer.send_many(50)
                await take(peer.lease(), 10)
        protected = "protected mode: only loopback clients are served"
        assert [log["event"] for log in logs] == ["recovered", "listening", protected, "audit", "stopped"]


class TestARestart:
    async def test_everything_is_there_again(self, serve):
        async with serve() as peer:
            await peer.create(fairness_header="tenant")
            ids = [await peer.send(b"%d" % number, headers={"tenant": "ab"[number % 2]}) for number in range(10)]
            delayed = await peer.send(b"later", delay_ms=3_600_000)
        async with serve() as peer:
            summary = await peer.summary()
            assert (summary.depth, summary.delayed, summary.active_keys) == (11, 1, 2)
            messages = await take(peer.lease(), 10)
            assert {message.id: message.payload for message in messages} == {
                sent: b"%d" % number for number, sent in enumerate(ids)
            }
            assert delayed not in ids

    async def test_with_fsync_too(self, serve):
        async with serve(storage={"durability": "fsync"}) as peer:
            await peer.create()
            sent = await peer.send(b"safe")
        async with serve(storage={"durability": "fsync"}) as peer:
            (message,) = await take(peer.lease(), 1)
            assert message.id == sent


class TestWhatCannotStart:
    async def test_a_second_server_on_the_same_data(self, serve, tmp_path):
        async with serve() as peer:
            with pytest.raises(StoreLocked, match="in use by another fila-server"):
                await Server(settings(tmp_path / "data")).start()
            await peer.create()  # the first goes on

    async def test_a_second_server_on_the_same_port(self, serve, tmp_path):
        async with serve() as peer:
            address = f"127.0.0.1:{peer.server.port}"
            other = Server(settings(tmp_path / "other", server={"listen_addr": address}))
            with pytest.raises(OSError, match=f"cannot listen on {address}"):
                await other.start()
            await asyncio.sleep(0.05)  # nothing of the one that failed is left in the loop
            await peer.create()


def run_server(tmp_path, *arguments, **variables):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)} | variables
    return subprocess.run(
        [sys.executable, "-m", "fila.server.main", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class TestTheProgram:
    @pytest.mark.parametrize(
        "text, named",
        [
            ("[server]\nlisten_adr = 'x'\n", "server.listen_adr"),
            ("[sever]\n", "'sever'"),
            ("[limits]\nmax_payload_bytes = 'big'\n", "limits.max_payload_bytes"),
            ("[storage]\ndurability = 'none'\n", "storage.durability"),
            ("[server\n", "malformed TOML"),
        ],
    )
    def test_a_configuration_that_is_not_understood_is_refused_by_name(self, tmp_path, text, named):
        (tmp_path / "fila.toml").write_text(text)
        result = run_server(tmp_path)
        assert result.returncode == 2
        assert named in result.stderr
        assert "fila.toml" in result.stderr
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "data").exists()

    def test_an_unknown_variable_is_refused_by_name(self, tmp_path):
        result = run_server(tmp_path, FILA_SERVER__LISTEN_ADDRESS="x")
        assert result.returncode == 2
        assert "FILA_SERVER__LISTEN_ADDRESS" in result.stderr

    @pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:99999", ""])
    def test_an_address_on_the_command_line_is_checked(self, tmp_path, address):
        result = run_server(tmp_path, "--listen", address)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert "expected an address" in result.stderr

    async def test_a_second_process_on_the_same_data_says_so_in_one_line(self, serve, tmp_path):
        async with serve():
            result = await asyncio.to_thread(run_server, tmp_path, "--data-dir", "data", "--listen", "127.0.0.1:0")
        assert result.returncode == 1
        assert "in use by another fila-server" in result.stderr
        assert result.stderr.count("\n") == 1

    async def test_a_port_that_is_taken_is_said_in_one_line(self, serve, tmp_path):
        async with serve() as peer:
            address = f"127.0.0.1:{peer.server.port}"
            result = await asyncio.to_thread(run_server, tmp_path, "--data-dir", "other", "--listen", address)
        assert result.returncode == 1
        errors = [line for line in result.stderr.splitlines() if "Traceback" in line or line.startswith("Error")]
        assert errors == [f"Error: cannot listen on {address}: is it in use?"]

    def test_its_version_and_help_are_told(self, tmp_path):
        assert run_server(tmp_path, "--version").stdout.startswith("fila-server ")
        assert "--data-dir" in run_server(tmp_path, "--help").stdout


async def test_a_server_says_when_all_messages_of_before_are_read(serve):
    """Once, when it is so."""
    told = []
    async with serve() as peer:
        await peer.create()
        await peer.send_many(50)
        await peer.server.stop()
        peer.server.on_loaded = lambda: told.append(peer.server.loading)
        with reads_of(2):
            await peer.server.start()
            assert peer.server.loading
            while not told:
                await asyncio.sleep(0.01)
    assert told == [False]
