"""The journal through the SDK and the CLI, over crashes, and when the oldest of it goes."""

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter

import pyarrow.parquet as pq
import pytest

from fila import AsyncClient, Client, FailedPreconditionError, InvalidArgumentError, OutgoingMessage
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, contents, eventually, take

LONG = "x" * 60
ON = "[journal]\nenabled = true\n"


@pytest.fixture
def server(tmp_path):
    with ServerProcess(tmp_path, config=ON) as process:
        yield process
        print(process.log)


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """One server for all tests here; each uses a queue of its own."""
    with ServerProcess(tmp_path_factory.mktemp("journal"), config=ON) as process:
        yield process


@pytest.fixture
def client(shared_server):
    with Client(shared_server.addr, timeout=30) as client:
        yield client


def fila(server, *args):
    command = [sys.executable, "-m", "fila.cli.main", "--addr", server.addr, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def kinds(entries):
    return Counter(entry.kind for entry in entries)


def test_the_way_of_a_message_is_read_back(client, queue):
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    message_id = client.enqueue(queue, {"tenant": "acme", "weight": "2"}, b"12345", priority=1)
    take(client, queue, 1)
    mine = [entry for entry in client.read_journal(queue=queue) if entry.message_id]
    assert [entry.kind for entry in mine] == ["enqueued", "leased", "acked"]
    assert {entry.message_id for entry in mine} == {message_id}
    assert {(entry.queue, entry.fairness_key, entry.priority, entry.weight) for entry in mine} == {
        (queue, "acme", 1, 2)
    }
    enqueued, leased, acked = mine
    assert (enqueued.size, enqueued.cost, leased.attempt, acked.attempt) == (5, 1, 1, 1)
    assert enqueued.enqueued_at_ns <= leased.at_ns <= acked.at_ns
    assert leased.until_ns > leased.at_ns


def test_any_piece_of_the_numbers_can_be_asked_for(client, queue):
    client.create_queue(queue)
    client.enqueue_many(queue, [b""] * 30)
    everything = list(client.read_journal())
    first = everything[0].seq
    numbers = [entry.seq for entry in everything]
    assert numbers == list(range(first, first + len(numbers)))
    middle = everything[-10].seq
    assert list(client.read_journal(middle)) == everything[-10:]
    assert list(client.read_journal(middle, max_entries=3)) == everything[-10:-7]
    assert list(client.read_journal(last=4)) == everything[-4:]
    assert list(client.read_journal(queue=queue, max_entries=5)) == [e for e in everything if e.queue == queue][:5]
    assert list(client.read_journal(everything[-1].seq + 1000)) == []
    batches = list(client.read_journal_batches(middle))
    assert len(batches[0]) == 0
    assert batches[0].next_seq == batches[-1].position == everything[-1].seq + 1
    assert [entry for batch in batches for entry in batch.entries()] == everything[-10:]
    with pytest.raises(InvalidArgumentError):
        list(client.read_journal(3, last=3))


def test_following_shows_what_happens_and_survives_a_crash_of_the_broker(server):
    """Numbers go on, nothing is told twice and nothing is left out, though the broker is killed meanwhile."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        seen = []
        with client.read_journal(follow=True) as reader:
            thread = threading.Thread(target=lambda: seen.extend(reader_loop(reader, seen)), daemon=True)
            thread.start()
            for round_number in range(3):
                client.enqueue_many("q", [b"x"] * 50)
                take(client, "q", 20)
                eventually(lambda n=round_number: kinds(seen)["acked"] == 20 * (n + 1), "the acks are told")
                server.kill()
                server.start()
            client.enqueue("q")
            eventually(lambda: kinds(seen)["enqueued"] == 151, "the last message is told")
        thread.join(10)
        assert not thread.is_alive()
        assert [entry.seq for entry in seen] == list(range(1, len(seen) + 1))
        assert seen == list(client.read_journal(max_entries=len(seen)))
        assert kinds(seen)["started"] == 4
        # The books balance, and the counts that each start wrote down agree with the entries before them.
        held = Counter()
        for entry in seen:
            held[entry.queue] += (entry.kind == "enqueued") - (entry.kind == "acked")
            if entry.kind == "counted":
                assert entry.count == held[entry.queue]
        assert held["q"] == sum(contents(client, "q")[:2])


def reader_loop(reader, seen):
    for entry in reader:
        seen.append(entry)
    return []


def test_the_async_client_reads_and_follows(shared_server, queue):
    async def run():
        async with AsyncClient(shared_server.addr, timeout=30) as client:
            await client.create_queue(queue)
            reader = client.read_journal(queue=queue, follow=True)
            told = [await anext(reader)]
            message_id = await client.enqueue(queue)
            told.append(await asyncio.wait_for(anext(reader), 30))
            waiting = asyncio.create_task(collect(reader))
            await asyncio.sleep(0)
        assert await asyncio.wait_for(waiting, 30) == [], "a client that is closed ends its readers"
        assert [entry.kind for entry in told] == ["created", "enqueued"]
        assert told[1].message_id == message_id

    async def collect(reader):
        return [entry async for entry in reader]

    asyncio.run(run())


def test_the_oldest_goes_and_whoever_asks_for_it_is_told(tmp_path):
    """The journal stays in bounds, over restarts, and what is left begins with what each queue held."""
    config = ON + "max_bytes = 1_048_576\n"
    with ServerProcess(tmp_path, config=config) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q", fairness_header="tenant")
        for part in range(6):
            messages = [OutgoingMessage(b"", {"tenant": f"tenant-{part}-{n}-{LONG}"}) for n in range(3000)]
            client.enqueue_many("q", messages)
            if part == 3:
                server.kill()
                server.start()
        with client.read_journal_batches(1) as batches:
            header = next(batches)
        assert header.first_available_seq > 1
        entries = list(client.read_journal(1))
        assert [entry.seq for entry in entries] == list(range(header.first_available_seq, header.next_seq))
        assert entries[0].kind in {"counted", "started"}
        held = next(entry.count for entry in entries if entry.kind == "counted" and entry.queue == "q")
        assert held + kinds(entries)["enqueued"] == 18_000
        told = fila(server, "journal", "tail", "--from", "1", "--json")
        assert told.returncode == 0
        assert told.stderr.startswith("Entries 1 to ")
        assert json.loads(told.stdout.splitlines()[0])["seq"] == header.first_available_seq


def test_a_journal_that_is_off_says_so(tmp_path):
    """Which it is unless it is switched on."""
    with ServerProcess(tmp_path) as server, Client(server.addr) as client:
        client.create_queue("q")
        assert list(client.read_journal()) == []
        with pytest.raises(FailedPreconditionError, match="journal is off"):
            list(client.read_journal(follow=True))
        told = fila(server, "journal", "tail")
        assert (told.returncode, told.stdout) == (0, "")
        assert "The journal is off" in told.stderr


def test_a_reader_that_reads_nothing_holds_up_nobody(server):
    """It takes no memory at the broker, which goes on, and stops in time."""
    with Client(server.addr, timeout=30) as client, Client(server.addr, timeout=30) as idle:
        client.create_queue("q")
        reader = idle.read_journal_batches(follow=True)
        next(reader)
        for _ in range(5):
            client.enqueue_many("q", [b"x" * 100] * 2000)
        with Inbox(client, "q", max_in_flight=1000) as inbox:
            inbox.wait(1000)
        server.stop()
        reader.close()


class TestCli:
    def test_tail_is_for_people_and_for_programs(self, shared_server, client, queue):
        client.create_queue(queue, max_attempts=1)
        message_id = client.enqueue(queue, payload=b"abc")
        with Inbox(client, queue) as inbox:
            inbox.wait(1)[0].nack("no")
        told = fila(shared_server, "journal", "tail", "--queue", queue, "--from", "1")
        assert told.returncode == 0, told.stderr
        lines = told.stdout.splitlines()
        dead = next(line for line in lines if " dead " in line)
        assert f"{queue} -> {queue}.dlq" in dead
        assert message_id in dead
        assert "cause=nacked" in dead
        assert any(" leased " in line and "waited=" in line for line in lines)
        told = fila(shared_server, "journal", "tail", "--queue", queue, "--last", "1000", "--json")
        entries = [json.loads(line) for line in told.stdout.splitlines()]
        assert [entry["kind"] for entry in entries][:2] == ["created", "enqueued"]
        assert entries[1]["size"] == 3
        assert all(entry["queue"] == queue for entry in entries)

    def test_tail_follows_until_it_is_interrupted(self, shared_server, client, queue):
        client.create_queue(queue)
        command = [sys.executable, "-m", "fila.cli.main", "--addr", shared_server.addr]
        command += ["journal", "tail", "-f", "--json", "--queue", queue, "--from", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert json.loads(process.stdout.readline())["kind"] == "created"
            client.enqueue(queue)
            assert json.loads(process.stdout.readline())["kind"] == "enqueued"
            process.send_signal(2)
            assert process.wait(30) == 130

    def test_what_is_exported_is_what_is_read(self, shared_server, client, queue, tmp_path):
        client.create_queue(queue, fairness_header="t")
        client.enqueue_many(queue, [OutgoingMessage(b"x", {"t": str(n % 5)}) for n in range(500)])
        take(client, queue, 100)
        file = tmp_path / "out.parquet"
        entries = list(client.read_journal())
        begin, end = entries[5].seq, entries[-3].seq
        told = fila(shared_server, "journal", "export", str(file), "--from", str(begin), "--to", str(end), "--json")
        assert told.returncode == 0, told.stderr
        rows = pq.read_table(file).to_pylist()
        assert json.loads(told.stdout) == {"file": str(file), "entries": len(rows)}
        wanted = entries[5:-2]
        assert rows == [{name: getattr(entry, name) for name in entry.__slots__} for entry in wanted]
        told = fila(shared_server, "journal", "export", str(file), "--queue", queue)
        assert told.returncode == 0
        assert set(pq.read_table(file)["queue"].to_pylist()) == {queue}
        assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"], "no draft is left"

    def test_an_export_that_fails_leaves_the_file_as_it_was(self, tmp_path):
        file = tmp_path / "out.parquet"
        file.write_text("what was there")
        with ServerProcess() as gone:
            pass
        told = fila(gone, "journal", "export", str(file))
        assert told.returncode == 3
        assert file.read_text() == "what was there"
        assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]

    def test_wrong_usage_is_explained(self, shared_server, tmp_path):
        assert fila(shared_server, "journal", "tail", "--from", "3", "--last", "3").returncode == 2
        told = fila(shared_server, "journal", "export", str(tmp_path / "x"), "--from", "3", "--to", "2")
        assert told.returncode == 2
        assert "--to must not be smaller than --from" in told.stderr
        nowhere = fila(shared_server, "journal", "export", str(tmp_path / "no" / "x.parquet"))
        assert nowhere.returncode == 1
        assert "Error:" in nowhere.stderr
