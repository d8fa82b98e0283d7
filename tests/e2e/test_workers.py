"""A server with several workers: one broker for its clients, whichever worker they reach."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress

import grpc
import psutil
import pytest

from fila import TLS, Client, FilaError, OutgoingMessage, PermissionDeniedError
from fila.cluster.placement import shard_of
from fila.testing import ServerFailed, ServerProcess
from fila.v1 import admin_pb2, admin_pb2_grpc, auth_pb2, auth_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.load import Load
from tests.e2e.support import PATIENCE_S, eventually, fila, take
from tests.support.certificates import Authority, grpc_credentials, tls_config

WORKERS = 3


def queue_of(worker, name="queue", workers=WORKERS):
    """A name that is placed on a worker."""
    return next(each for number in range(1000) if shard_of(each := f"{name}-{number}", workers) == worker)


def free_ports(count):
    """The first of so many ports in a row that nobody uses."""
    for base in range(20_000 + os.getpid() * 16 % 8000, 60_000, 16):  # no two processes look at the same ones
        with suppress(OSError):
            for number in range(count):
                with closing(socket.socket()) as probe:
                    probe.bind(("127.0.0.1", base + number))
            return base
    raise AssertionError("no free ports")


def workers_of(server):
    """The processes of the workers, by their numbers."""
    children = psutil.Process(server.pid).children()
    numbers = {}
    for line in server.log.splitlines():
        with suppress(ValueError, KeyError):
            said = json.loads(line)
            if said["event"] == "a worker is started":
                numbers[said["worker"]] = said["pid"]
    return {number: child for number, pid in numbers.items() for child in children if child.pid == pid}


def until_all_serve(server):
    """A server is up when one worker serves; the ports of the others may come a moment later."""

    def serves(address):
        host, _, port = address.rpartition(":")
        with suppress(OSError), closing(socket.create_connection((host, int(port)), PATIENCE_S)):
            return True
        return False

    eventually(lambda: all(map(serves, server.direct)), "all workers serve")


@contextmanager
def several(tmp_path=None, *args, **more):
    base = free_ports(WORKERS)
    given = ("--workers", str(WORKERS), *args)
    with ServerProcess(tmp_path, args=given, env={"FILA_SERVER__WORKER_PORT": str(base)}, **more) as server:
        server.direct = [f"127.0.0.1:{base + number}" for number in range(WORKERS)]
        until_all_serve(server)
        yield server
        print(server.log)


@pytest.fixture(scope="module")
def server():
    with several() as process:
        yield process


@pytest.fixture(scope="module")
def client(server):
    with Client(server.addr, timeout=PATIENCE_S) as client:
        yield client


def plain(address):
    """A client of gRPC that knows nothing of workers."""
    return grpc.insecure_channel(address)


@pytest.mark.parametrize("entry", range(WORKERS))
def test_every_worker_takes_every_call_of_a_plain_client(server, entry):
    """Unary calls, both ways to consume, streams; a queue of each worker through each worker."""
    with plain(server.direct[entry]) as channel:
        hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
        for owner in range(WORKERS):
            queue = queue_of(owner, f"plain-{entry}")
            admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue))
            _, call = hot.Enqueue.with_call(service_pb2.EnqueueRequest(queue=queue, payload=b"1"))
            told = dict(call.trailing_metadata()).get("fila-owner")
            assert told == (None if owner == entry else server.direct[owner])
            batch = [service_pb2.EnqueueRequest(payload=b"2"), service_pb2.EnqueueRequest(payload=b"3")]
            (answer,) = hot.EnqueueStream(iter([service_pb2.EnqueueBatchRequest(messages=batch, queue=queue)]))
            assert [bool(result.message_id) for result in answer.results] == [True, True]
            lease = hot.Lease(service_pb2.LeaseRequest(queue=queue, max_in_flight=2))
            assert int(dict(lease.initial_metadata())["fila-visibility-timeout-ms"]) == 30_000
            held = []
            while len(held) < 2:
                held += next(lease).messages
            assert [message.payload for message in held] == [b"1", b"2"]
            hot.Ack(service_pb2.AckRequest(queue=queue, message_id=held[0].id))
            hot.ExtendLease(service_pb2.ExtendLeaseRequest(queue=queue, message_id=held[1].id))
            hot.Nack(service_pb2.NackRequest(queue=queue, message_id=held[1].id, dead_letter=True))
            third = next(lease).messages[0]
            settle = service_pb2.AckGroup(queue=queue, message_ids=[third.id, held[0].id])
            (settled,) = hot.Settle(iter([service_pb2.SettleRequest(acks=[settle], sequence=7)]))
            assert settled.sequence == 7
            assert [failure.message_id for failure in settled.failures] == [held[0].id]
            lease.cancel()
            peeked = admin.Peek(admin_pb2.PeekRequest(queue=f"{queue}.dlq", payload_bytes=9)).messages
            assert [message.message.payload for message in peeked] == [b"2"]
            assert admin.Redrive(admin_pb2.RedriveRequest(dlq_queue=f"{queue}.dlq")).redriven == 1
            assert admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).summary.depth == 1
            assert admin.Purge(admin_pb2.PurgeRequest(queue=queue, any_queue=True)).purged == 1
            admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue))
        with pytest.raises(grpc.RpcError) as refused:
            hot.Enqueue(service_pb2.EnqueueRequest(queue="nowhere"))
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert "grpc-status-details-bin" in dict(refused.value.trailing_metadata())


def test_a_batch_for_several_workers_is_done_in_parts_and_once(server):
    """Each message has its own answer, in the order of the request, also when the batch is sent again elsewhere."""
    queues = [queue_of(owner, "mixed") for owner in range(WORKERS)]
    with Client(server.addr) as client:
        for queue in queues:
            client.create_queue(queue)
    named = [queues[1], "nowhere", queues[0], queues[2], queues[1]]
    batch = service_pb2.EnqueueBatchRequest(
        messages=[service_pb2.EnqueueRequest(queue=queue, payload=b"%d" % at) for at, queue in enumerate(named)],
        producer_id="mixed",
        sequence=1,
    )
    seen = []
    for address in (*server.direct, server.addr):
        with plain(address) as channel:
            hot = service_pb2_grpc.FilaServiceStub(channel)
            seen.append(hot.EnqueueBatch(batch))
            seen += hot.EnqueueStream(iter([batch]))
    first = seen[0]
    assert [bool(result.message_id) for result in first.results] == [True, False, True, True, True]
    assert first.results[1].error.code == grpc.StatusCode.NOT_FOUND.value[0]
    ids = [result.message_id for result in first.results]
    for again in seen[1:]:
        assert [result.message_id for result in again.results] == ids
        assert [result.duplicate for result in again.results] == [True, False, True, True, True]
    with Client(server.addr) as client:
        found = {
            queue: [message.payload for message in take(client, queue, 1 + (queue == queues[1]))] for queue in queues
        }
    assert found == {queues[0]: [b"2"], queues[1]: [b"0", b"4"], queues[2]: [b"3"]}


def test_a_batch_of_which_one_part_is_refused_says_so_of_each_message(server, client):
    """What another worker has done is told all the same. When nobody has done anything, the call is refused."""
    queues = [queue_of(owner, "partly") for owner in range(WORKERS)]
    for queue in queues:
        client.create_queue(queue)

    def batch(producer, sequence, *owners):
        messages = [service_pb2.EnqueueRequest(queue=queues[owner], payload=b"x") for owner in owners]
        return service_pb2.EnqueueBatchRequest(messages=messages, producer_id=producer, sequence=sequence)

    with plain(server.direct[0]) as channel:
        hot = service_pb2_grpc.FilaServiceStub(channel)
        for late, other in ((1, 0), (0, 1), (1, 2)):
            producer = f"partly-{late}-{other}"
            hot.EnqueueBatch(batch(producer, 100, late))
            told = hot.EnqueueBatch(batch(producer, 1, late, other)).results
            assert [bool(result.message_id) for result in told] == [False, True]
            assert told[0].error.code == grpc.StatusCode.FAILED_PRECONDITION.value[0]
            assert "too old" in told[0].error.message
            hot.EnqueueBatch(batch(producer, 100, other))
            with pytest.raises(grpc.RpcError) as refused:
                hot.EnqueueBatch(batch(producer, 2, late, other))
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert [client.queue_stats(queue).summary.depth for queue in queues] == [3, 4, 2]


def test_settlements_for_several_workers_are_done_in_parts(server, client):
    queues = [queue_of(owner, "settled") for owner in range(WORKERS)]
    for queue in queues:
        client.create_queue(queue)
        client.enqueue(queue, payload=b"x")
    with plain(server.addr) as channel:
        hot = service_pb2_grpc.FilaServiceStub(channel)
        leases = [hot.Lease(service_pb2.LeaseRequest(queue=queue)) for queue in queues]
        held = [next(lease).messages[0].id for lease in leases]
        settle = service_pb2.SettleRequest(
            acks=[service_pb2.AckGroup(queue=queues[0], message_ids=[held[0], "no-id"])],
            nacks=[service_pb2.NackRequest(queue=queues[1], message_id=held[1], dead_letter=True)],
            extends=[service_pb2.ExtendGroup(queue=queues[2], message_ids=[held[2]], extend_ms=60_000)],
            sequence=3,
        )
        (answer,) = hot.Settle(iter([settle]))
        assert (answer.sequence, [failure.message_id for failure in answer.failures]) == (3, ["no-id"])
        for lease in leases:
            lease.cancel()
    assert client.queue_stats(f"{queues[1]}.dlq").summary.depth == 1


def test_lists_are_of_the_whole_and_come_in_pages(server, client):
    names = sorted(f"listed-{number}" for number in range(10))
    for name in names:
        client.create_queue(name)
    assert len({shard_of(name, WORKERS) for name in names}) == WORKERS
    with plain(server.direct[1]) as channel:
        admin = admin_pb2_grpc.FilaAdminStub(channel)
        seen, cursor = [], ""
        while True:
            page = admin.ListQueues(admin_pb2.ListQueuesRequest(limit=3, cursor=cursor))
            assert len(page.queues) <= 3
            seen += [queue.name for queue in page.queues]
            if not (cursor := page.cursor):
                break
    assert seen == sorted(set(seen))
    assert {*names, *(f"{name}.dlq" for name in names)} <= set(seen)


def test_configuration_is_that_of_all_workers_as_soon_as_it_is_answered(server):
    for number, setter in enumerate(server.direct):
        with Client(setter) as client:
            client.set_config("color", f"blue-{number}")
        for address in server.direct:
            with Client(address) as client:
                assert client.get_config("color") == f"blue-{number}"
    with Client(server.direct[2]) as client:
        assert client.delete_config("color")
    for address in server.direct:
        with Client(address) as client:
            assert client.get_config("color") is None


def test_the_map_says_where_queues_are(server):
    with plain(server.direct[1]) as channel:
        found = service_pb2_grpc.FilaServiceStub(channel).GetClusterMap(service_pb2.GetClusterMapRequest()).map
    assert [member.address for member in found.members] == server.direct
    assert (list(found.owners), found.self) == ([0, 1, 2], 1)


def test_what_spans_workers_and_is_not_built_is_refused(server, client):
    with plain(server.addr) as channel:
        hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
        auth = auth_pb2_grpc.FilaAuthStub(channel)
        limits = auth_pb2.PrincipalLimits(messages_per_second=5)
        for ask in (
            lambda: hot.StageEnqueue(
                service_pb2.StageEnqueueRequest(producer="p", transaction=1, part="a", sequence=1)
            ),
            lambda: hot.CommitTransaction(service_pb2.CommitTransactionRequest(producer="p", transaction=1)),
            lambda: list(admin.ReadJournal(admin_pb2.ReadJournalRequest())),
            lambda: admin.ReadAudit(admin_pb2.ReadAuditRequest()),
            lambda: auth.SetPrincipal(auth_pb2.SetPrincipalRequest(name="p", limits=limits)),
            lambda: admin.CreateQueue(admin_pb2.CreateQueueRequest(name="parts", parts=3)),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                ask()
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED, refused.value
        described = hot.Describe(service_pb2.DescribeRequest())
        assert service_pb2.FEATURE_TRANSACTIONS not in described.features
    queue = queue_of(2, "audited")
    client.create_queue(queue)
    client.set_config("throttle.audited", "rate=5")
    assert [entry.action for entry in client.read_audit(queue=queue)] == ["CreateQueue"]
    assert [entry.action for entry in client.read_audit(resource="throttle:audited")] == ["SetConfig"]


def test_nobody_outside_passes_for_a_worker(server, client):
    """Metadata that workers use among each other means nothing on a port, and is not passed on."""
    forged = (("fila-peer", "203.0.113.9:1"), ("fila-certificate-bin", b"{}"))
    for owner in range(WORKERS):
        queue = queue_of(owner, "forged")
        with plain(server.direct[0]) as channel:
            admin = admin_pb2_grpc.FilaAdminStub(channel)
            admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue), metadata=forged)
        (entry,) = client.read_audit(queue=queue)
        assert entry.peer.startswith("127.0.0.1:")
    sockets = server.data_dir / "sockets"
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in sockets.iterdir()) == ["0", "1", "2"]
    with plain(server.direct[0]) as channel:  # what workers ask each other is served on their sockets alone
        with pytest.raises(grpc.RpcError) as refused:
            channel.stream_stream("/fila.cluster.Workers/Follow")(iter([b"{}"])).result()
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_consumer_that_leaves_gives_back_through_another_worker(server, client):
    """Half-close and cancel reach the worker that has the queue as what they are."""
    owner, entry = 1, 2
    queue = queue_of(owner, "leaving")
    client.create_queue(queue)
    client.enqueue(queue, payload=b"x")

    def held(then):
        channel = plain(server.direct[entry])
        requests = [service_pb2.ConsumeRequest(queue=queue, max_in_flight=5)]
        more = threading.Event()

        def say():
            yield requests[0]
            more.wait(PATIENCE_S)
            yield service_pb2.ConsumeRequest(handed=1)
            if then != "half-close":
                threading.Event().wait(PATIENCE_S)

        consume = service_pb2_grpc.FilaServiceStub(channel).Consume(say())
        (message,) = next(consume).messages
        more.set()
        if then == "half-close":
            assert list(consume) == []
        else:
            consume.cancel()
        channel.close()
        return message

    first = held("cancel")
    eventually(lambda: client.queue_stats(queue).summary.in_flight == 0, "it is given back")
    second = held("half-close")
    assert second.id == first.id
    assert client.queue_stats(queue).summary.in_flight == 1  # it stays with the application
    client.purge(f"{queue}.dlq")


def test_a_caller_that_cancels_is_not_waited_for_elsewhere(server, client):
    """A deadline goes along: a claim that waits ends at the other worker too."""
    queue = queue_of(1, "waiting")
    client.create_queue(queue)
    with plain(server.direct[0]) as channel:
        hot = service_pb2_grpc.FilaServiceStub(channel)
        with pytest.raises(grpc.RpcError) as late:
            hot.Claim(service_pb2.ClaimRequest(queue=queue, group="g", wait_ms=9_000), timeout=0.3)
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_rights_hold_on_all_workers_at_once():
    """A key that is made, limited or revoked through one worker is so on all; streams of a revoked key end."""
    with several() as server:
        admin = fila(server, "auth", "init").strip()
        queues = [queue_of(owner, "kept") for owner in range(WORKERS)]
        with Client(server.direct[1], api_key=admin) as client:
            for queue in queues:
                client.create_queue(queue)
            client.auth.set_role("one", [f"enqueue=queue:{queues[2]}", f"consume=queue:{queues[2]}"])
            client.auth.set_principal("one", ["one"])
            made = client.auth.create_key("one")
            for address in server.direct:
                with Client(address, api_key=made.token) as worker:
                    worker.enqueue(queues[2], payload=b"x")
                    with pytest.raises(PermissionDeniedError):
                        worker.enqueue(queues[0], payload=b"x")
                    assert [queue.name for queue in worker.list_queues()] == []
            with plain(server.direct[0]) as channel:
                metadata = (("authorization", f"Bearer {made.token}"),)
                lease = service_pb2_grpc.FilaServiceStub(channel).Lease(
                    service_pb2.LeaseRequest(queue=queues[2]), metadata=metadata
                )
                next(lease)
                client.auth.revoke_key(made.info.id)
                with pytest.raises(grpc.RpcError) as ended:
                    while True:
                        next(lease)
                assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
            for address in server.direct:
                with Client(address, api_key=made.token) as worker, pytest.raises(FilaError, match="not valid"):
                    worker.enqueue(queues[2], payload=b"x")
        server.stop()
        again = fila(server, "auth", "init", "--data-dir", str(server.data_dir)).strip()
        server.start()
        until_all_serve(server)
        for address in server.direct:
            with Client(address, api_key=again) as client:
                assert client.auth.who_am_i().principal == "admin"


def test_a_client_certificate_counts_on_every_worker(tmp_path):
    """Who a caller is by its certificate goes along with its calls, and so does that its rule was removed."""
    authority = Authority(tmp_path)
    pair, root = authority.server(), authority.client("root")
    config = tls_config(pair, authority.ca, "required")
    (tmp_path / "server").mkdir()
    with several(tmp_path / "server", config=config, credentials=grpc_credentials(authority, root)) as server:
        addresses = [f"localhost:{address.rpartition(':')[2]}" for address in server.direct]
        shown = authority.client("shop")
        tls = TLS(ca=authority.ca, cert=shown.cert, key=shown.key)
        env = {"FILA_TLS_CA": authority.ca, "FILA_TLS_CERT": root.cert, "FILA_TLS_KEY": root.key}
        key = fila(server, "auth", "init", env=env | {"FILA_ADDR": addresses[0]}).strip()
        queues = [queue_of(owner, "shown") for owner in range(WORKERS)]
        with Client(addresses[0], tls=tls, api_key=key) as admin:
            for queue in queues:
                admin.create_queue(queue)
            rule = admin.auth.add_certificate_rule("shop", "dn", "CN=shop", roles=["producer:shown-*"])
            for address in addresses:
                with Client(address, tls=tls) as client:
                    for queue in queues:
                        client.enqueue(queue, payload=b"x")
                    with pytest.raises(PermissionDeniedError):
                        client.pause_queue(queues[0])
            admin.auth.remove_certificate_rule(rule.id)
            for address in addresses:
                with Client(address, tls=tls) as client:
                    for queue in queues:
                        with pytest.raises(FilaError, match="no rule knows"):
                            client.enqueue(queue, payload=b"x")


def test_nothing_confirmed_is_lost_or_undone_when_workers_are_killed_under_load(tmp_path):
    """Owners of the queue and those that pass its calls on; the parent starts each again."""

    async def scenario(server):
        loads = [Load(server.addr, queue_of(owner, "load"), producers=2, consumers=1) for owner in range(WORKERS)]
        async with loads[0].running(), loads[1].running(), loads[2].running():
            for number in (1, 0, 2):
                for load in loads:
                    await load.progress(60)
                before = workers_of(server)
                before[number].kill()

                def back(number=number, pid=before[number].pid):
                    return workers_of(server).get(number, psutil.Process()).pid not in {pid, os.getpid()}

                await asyncio.to_thread(eventually, back, "the worker is back")
            for load in loads:
                await load.progress(60)
        return loads

    with several(tmp_path) as server:
        with Client(server.addr) as client:
            for owner in range(WORKERS):
                client.create_queue(queue_of(owner, "load"), fairness_header="tenant", visibility_timeout_ms=2000)
        for load in asyncio.run(scenario(server)):
            load.check(connections_lost=True)
        assert server.stop() == 0


def test_a_throttle_holds_for_all_workers_together(server, client):
    """Its rate while messages of queues of all workers wait for it, and its cap while consumers hold messages."""
    queues = [queue_of(owner, "throttled") for owner in range(WORKERS)]
    for queue in queues:
        client.create_queue(queue, throttle_headers=["provider"])
    rate, burst = 100, 10
    client.set_config("throttle.provider:a", f"rate={rate},burst={burst}")
    for queue in queues:
        client.enqueue_many(queue, [OutgoingMessage(b"a", {"provider": "a"})] * 200)
    leases = []
    with plain(server.addr) as channel:
        hot = service_pb2_grpc.FilaServiceStub(channel)
        began = time.monotonic()
        arrived = Counter()

        def read(queue):
            lease = hot.Lease(service_pb2.LeaseRequest(queue=queue, max_in_flight=1000))
            leases.append(lease)
            with suppress(grpc.RpcError):
                for response in lease:
                    arrived[queue] += len(response.messages)

        threads = [threading.Thread(target=read, args=(queue,)) for queue in queues]
        for thread in threads:
            thread.start()
        eventually(lambda: sum(arrived.values()) >= 200 and min(arrived[queue] for queue in queues) >= 20, "all pass")
        passed, seconds = (
            sum(client.queue_stats(queue).counters.delivered for queue in queues),
            time.monotonic() - began,
        )
        assert passed <= rate * seconds + burst
        for lease in leases:
            lease.cancel()
        for thread in threads:
            thread.join(PATIENCE_S)


def test_a_cap_holds_for_all_workers_together(server, client):
    """Consumers of queues of all workers hold no more of a key than it allows, and all messages pass."""
    queues = [queue_of(owner, "capped") for owner in range(WORKERS)]
    cap = 4
    client.set_config("throttle.provider:b", f"max_in_flight={cap}")
    for queue in queues:
        client.create_queue(queue, throttle_headers=["provider"])
        client.enqueue_many(queue, [OutgoingMessage(b"b", {"provider": "b"})] * 20)
    done, most, holding = Counter(), [0], set()
    lock = threading.Lock()

    def work(queue):
        with Client(server.addr) as own:
            for message in own.consume(queue, max_in_flight=20):
                with lock:
                    holding.add(message.id)
                    most[0] = max(most[0], len(holding))
                time.sleep(0.002)
                with lock:
                    holding.discard(message.id)
                message.ack()
                done[queue] += 1
                if done[queue] == 20:
                    return

    threads = [threading.Thread(target=work, args=(queue,), daemon=True) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sum(done.values()) == 60
    assert most[0] <= cap


def test_a_data_directory_belongs_to_its_number_of_workers(tmp_path):
    with ServerProcess(tmp_path, args=["--workers", "2"]) as server, Client(server.addr) as client:
        client.create_queue("kept")
        client.enqueue("kept", payload=b"x")
    for args, said in ((["--workers", "3"], "made with 2 workers, not with 3"), ([], "start it with --workers 2")):
        with pytest.raises(ServerFailed, match=said), ServerProcess(tmp_path, args=args):
            pass
    with ServerProcess(tmp_path, args=["--workers", "2"]) as server, Client(server.addr) as client:
        assert [message.payload for message in take(client, "kept", 1)] == [b"x"]


def test_a_store_that_cannot_be_opened_ends_the_start(tmp_path):
    """All of it, with the reason: no worker waits for the one that will not come."""
    with ServerProcess(tmp_path, args=["--workers", "3"]) as server:
        pass
    (server.data_dir / "worker-1" / "FILA_FORMAT").write_text("no number")
    failing = ServerProcess(tmp_path, args=["--workers", "3"])
    with pytest.raises(ServerFailed, match=r"ended with exit code 1\n(?s:.*)worker 1: the store"), failing:
        pass
    assert failing.log.count("Error:") == 1


def test_store_commands_say_which_folders_are_stores(tmp_path):
    with ServerProcess(tmp_path, args=["--workers", "2"]) as server:
        pass
    command = [sys.executable, "-m", "fila.server.main", "check", "--data-dir"]
    whole = subprocess.run([*command, str(server.data_dir)], capture_output=True, text=True, check=False)
    assert (whole.returncode, "worker-0" in whole.stderr) == (1, True)
    one = subprocess.run([*command, str(server.data_dir / "worker-1")], capture_output=True, text=True, check=False)
    assert one.returncode == 0, one.stderr


def test_a_data_directory_of_one_process_is_not_divided(tmp_path):
    with ServerProcess(tmp_path) as server, Client(server.addr) as client:
        client.create_queue("kept")
    with (
        pytest.raises(ServerFailed, match="holds the store of a server without workers"),
        ServerProcess(tmp_path, args=["--workers", "2"]),
    ):
        pass
    with ServerProcess(tmp_path) as server, Client(server.addr) as client:
        assert "kept" in [queue.name for queue in client.list_queues()]


def test_the_address_is_that_of_one_server(tmp_path):
    """Workers share the port among themselves and with nobody else."""
    (tmp_path / "one").mkdir()
    with ServerProcess(tmp_path / "one", args=["--workers", "2"]) as server:
        (tmp_path / "two").mkdir()
        other = ServerProcess(tmp_path / "two", args=["--workers", "2", "--listen", server.addr])
        with pytest.raises(ServerFailed, match="is it in use"), other:
            pass


@pytest.mark.slow
def test_a_second_server_on_a_data_directory_leaves_the_first_alone(tmp_path):
    with several(tmp_path) as server:
        queues = [queue_of(owner, "mine") for owner in range(WORKERS)]
        with Client(server.direct[0]) as client:
            for queue in queues:
                client.create_queue(queue)
        (tmp_path / "second").mkdir()
        args = ["--workers", str(WORKERS), "--data-dir", str(server.data_dir)]
        with (
            pytest.raises(ServerFailed, match="in use by another server"),
            ServerProcess(tmp_path / "second", args=args),
        ):
            pass
        workers_of(server)[1].kill()  # it opens its sockets anew, and so do the others
        with Client(server.direct[0], timeout=PATIENCE_S) as client:
            for queue in queues:
                eventually(lambda queue=queue: answers(client, queue), "the worker is back")


def answers(client, queue):
    with suppress(FilaError):
        return client.queue_stats(queue)


def test_workers_end_with_their_parent(tmp_path):
    """A parent that is killed leaves nobody behind: the next one has the stores to itself."""
    with several(tmp_path) as server:
        with Client(server.addr) as client:
            client.create_queue("kept")
        workers = list(workers_of(server).values())
        server.kill()
        _, alive = psutil.wait_procs(workers, PATIENCE_S)
        assert alive == []
        server.start()
        until_all_serve(server)
        with Client(server.addr) as client:
            assert "kept" in [queue.name for queue in client.list_queues()]


def test_callers_that_do_not_read_end_their_own_calls(server, client):
    """Hundreds of them come through one worker: the memory of both stays small, nothing fails, and others go on."""
    here, others, count = queue_of(0, "unread"), queue_of(0, "others"), 400
    for queue in (here, others):
        client.create_queue(queue)
    for _ in range(count):
        client.enqueue_many(here, [bytes(30_000)] * 16)
    owner, entry = workers_of(server)[0], workers_of(server)[1]
    before = [worker.memory_info().rss for worker in (owner, entry)]
    channels = [plain(server.direct[1]) for _ in range(5)]
    with closing(plain(server.direct[1])) as channel:
        waits = service_pb2_grpc.FilaServiceStub(channel).Lease(service_pb2.LeaseRequest(queue=others))
        assert waits.initial_metadata()
        request = service_pb2.LeaseRequest(queue=here, max_in_flight=16)
        stubs = [service_pb2_grpc.FilaServiceStub(each) for each in channels]
        unread = [stubs[number % 5].Lease(request) for number in range(count)]
        eventually(lambda: sum(not call.is_active() for call in unread) > count // 4, "calls that hold too much end")
        client.enqueue(others, payload=b"x")
        assert [message.payload for message in next(waits).messages] == [b"x"]
        grown = [worker.memory_info().rss - was for worker, was in zip((owner, entry), before, strict=True)]
        assert any(call.is_active() for call in unread)
        waits.cancel()
    for channel in channels:
        channel.close()
    assert "call failed" not in server.log
    assert max(grown) < 140 << 20, grown


@pytest.mark.slow
def test_a_worker_that_stands_still_is_given_up_by_the_others(tmp_path):
    """Its calls fail, those of other queues go on, and it serves again when it goes on. A change that it has not made
    is told as such, also by way of a third worker, and reaches it.
    """
    with several(tmp_path) as server:
        here, there = queue_of(0, "still"), queue_of(1, "still")
        with Client(server.direct[0], timeout=PATIENCE_S) as client:
            for queue in (here, there):
                client.create_queue(queue)
            stopped = workers_of(server)[1]
            stopped.send_signal(signal.SIGSTOP)
            try:
                with Client(server.direct[0], timeout=2) as hasty, pytest.raises(FilaError):
                    hasty.queue_stats(there)
                client.enqueue(here, payload=b"x")
                with plain(server.direct[2]) as channel, pytest.raises(grpc.RpcError) as told:
                    admin_pb2_grpc.FilaAdminStub(channel).SetConfig(admin_pb2.SetConfigRequest(key="late", value="1"))
                assert told.value.code() is grpc.StatusCode.UNAVAILABLE
                assert told.value.details() == (
                    "the change is made, but not on all workers yet: it will reach worker 1 later"
                )
            finally:
                stopped.send_signal(signal.SIGCONT)
            client.enqueue(there, payload=b"x")
            assert client.queue_stats(there).summary.depth == 1
        with Client(server.direct[1], timeout=PATIENCE_S) as client:
            eventually(lambda: "late" in client.list_config(), "the change has reached it")
