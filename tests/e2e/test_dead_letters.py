"""Dead letters and pausing as their users see them: SDK and CLI against a real server, over a restart too."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import time

import pytest

from fila import AsyncClient, Client, FailedPreconditionError, InvalidArgumentError, QueueNotFoundError
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, contents, payloads, take


def kill(client, queue, count, error="boom", **headers):
    """Enqueue messages and let them die; their ids."""
    ids = [client.enqueue(queue, headers, b"%d" % number) for number in range(count)]
    with Inbox(client, queue, on_message=lambda message: message.nack(error)) as inbox:
        inbox.wait(count)
    return ids


@pytest.fixture
def dead(client, queue):
    """A queue with three dead letters of one kind and two of another."""
    client.create_queue(queue, max_attempts=1, fairness_header="tenant")
    return kill(client, queue, 3, "upstream timeout", tenant="a"), kill(client, queue, 2, "no such user", tenant="b")


def run(server, *args):
    command = [sys.executable, "-m", "fila.cli.main", *args]
    return subprocess.run(
        command, capture_output=True, check=False, timeout=60, env={**os.environ, "FILA_ADDR": server.addr}
    )


class TestTheSdk:
    def test_looks_without_taking(self, client, queue, dead):
        timeouts, unknown = dead
        page = client.peek(f"{queue}.dlq", limit=4, payload_bytes=100)
        assert [one.id for one in page.messages] == [*timeouts, unknown[0]]
        rest = client.peek(f"{queue}.dlq", cursor=page.cursor)
        assert ([one.id for one in rest.messages], rest.cursor) == ([unknown[1]], "")
        letter = page.messages[0]
        assert (letter.payload, letter.fairness_key, letter.attempt_count) == (b"0", "a", 1)
        assert letter.dead_letter.source_queue == queue
        assert [one.error for one in letter.attempts] == ["upstream timeout"]
        found = client.peek(f"{queue}.dlq", newest=True, error="TIMEOUT", headers={"tenant": None}).messages
        assert [one.id for one in found] == timeouts[::-1]
        assert client.peek(f"{queue}.dlq", message_ids=[]).messages == ()
        assert contents(client, f"{queue}.dlq") == (5, 0, 0)

    def test_redrives_what_is_meant_as_if_it_had_never_failed(self, client, queue, dead):
        timeouts, _ = dead
        progress = []
        assert client.redrive(f"{queue}.dlq", error="timeout", dry_run=True) == 3
        assert client.redrive(f"{queue}.dlq", error="timeout", on_progress=progress.append) == 3
        assert progress[-1] == 3
        again = take(client, queue, 3)
        assert [message.id for message in again] == timeouts
        assert {(message.attempt_count, message.fairness_key, message.dead_letter) for message in again} == {
            (0, "a", None)
        }
        assert contents(client, f"{queue}.dlq") == (2, 0, 0)

    def test_redrives_no_faster_than_told(self, client, queue, dead):
        began = time.monotonic()
        assert client.redrive(f"{queue}.dlq", rate=10, count=4) == 4
        assert time.monotonic() - began >= 0.3
        assert contents(client, f"{queue}.dlq")[0] == 1

    def test_purges(self, client, queue, dead):
        assert client.purge(f"{queue}.dlq", fairness_key="b") == 2
        assert client.purge(f"{queue}.dlq", count=1) == 1
        assert contents(client, f"{queue}.dlq") == (2, 0, 0)
        counters = client.queue_stats(f"{queue}.dlq").counters
        assert (counters.purged, counters.redriven) == (3, 0)

    def test_leaves_what_somebody_holds(self, client, queue, dead):
        with Inbox(client, f"{queue}.dlq", max_in_flight=2) as inbox:
            held = inbox.wait(2)
            assert client.redrive(f"{queue}.dlq") == 3
            assert client.purge(f"{queue}.dlq") == 0
            states = {one.id: one.state for one in client.peek(f"{queue}.dlq").messages}
            assert states == {message.id: "leased" for message in held}

    def test_refuses_in_words(self, client, queue):
        client.create_queue(queue)
        with pytest.raises(InvalidArgumentError, match="is not a dead-letter queue"):
            client.redrive(queue)
        with pytest.raises(InvalidArgumentError, match="is not a dead-letter queue"):
            client.purge(queue)
        with pytest.raises(QueueNotFoundError):
            client.peek("nowhere")
        with pytest.raises(InvalidArgumentError, match="states must be a list of any of ready, delayed, leased"):
            client.peek(queue, states=["dead"])
        with pytest.raises(InvalidArgumentError, match="unknown filter colour: valid names are headers"):
            client.peek(queue, colour="red")
        with pytest.raises(InvalidArgumentError):
            client.peek(queue, payload_bytes=-1)
        with pytest.raises(InvalidArgumentError, match="rate must be a finite number above 0"):
            client.redrive(f"{queue}.dlq", rate=0)
        with pytest.raises(InvalidArgumentError, match="count must be at least 1"):
            client.purge(f"{queue}.dlq", count=0)

    def test_a_queue_with_dead_letters_can_be_deleted_once_they_are_gone(self, client, queue, dead):
        with pytest.raises(FailedPreconditionError):
            client.delete_queue(queue)
        client.purge(f"{queue}.dlq")
        assert client.delete_queue(queue) == 0

    def test_the_async_client_does_the_same(self, shared_server, client, queue, dead):
        timeouts, unknown = dead

        async def work():
            async with AsyncClient(shared_server.addr, timeout=30) as other:
                page = await other.peek(f"{queue}.dlq", fairness_key="b")
                assert [one.id for one in page.messages] == unknown
                assert await other.redrive(f"{queue}.dlq", message_ids=timeouts) == 3
                assert await other.purge(f"{queue}.dlq") == 2
                await other.pause_queue(queue)
                assert (await other.queue_stats(queue)).summary.paused
                await other.resume_queue(queue)

        asyncio.run(work())
        assert not client.queue_stats(queue).summary.paused

    def test_many_take_many_calls(self, client, queue):
        client.create_queue(queue)
        client.enqueue_many(queue, [b"x"] * 25_000)
        assert len(client.peek(queue, limit=2_500).messages) == 2_500
        progress = []
        assert client.purge(queue, any_queue=True, on_progress=progress.append) == 25_000
        assert len(progress) > 2
        assert progress == sorted(progress)
        assert contents(client, queue) == (0, 0, 0)


def test_pausing_and_redriving_outlive_a_kill(server):
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q", max_attempts=1)
        client.create_queue("calm")
        ids = kill(client, "q", 20)
        assert client.redrive("q.dlq", count=15) == 15
        client.pause_queue("calm")
        client.enqueue("calm", payload=b"waits")
    server.kill()
    server.start()
    with Client(server.addr, timeout=30) as client:
        assert contents(client, "q") == (15, 0, 0)
        assert contents(client, "q.dlq") == (5, 0, 0)
        messages = take(client, "q", 15)
        assert [message.id for message in messages] == ids[:15]
        assert {message.attempt_count for message in messages} == {0}
        assert client.queue_stats("calm").summary.paused
        with Inbox(client, "calm") as inbox:
            client.enqueue("calm", payload=b"too")
            time.sleep(0.3)
            assert inbox.messages == []
            client.resume_queue("calm")
            assert payloads(inbox.wait(2)) == [b"waits", b"too"]


class TestTheCommand:
    def test_shows_redrives_and_purges(self, shared_server, client, queue, dead):
        graves = f"{queue}.dlq"
        table = run(shared_server, "dlq", "peek", graves).stdout.decode().splitlines()
        assert len(table) == 6
        (line,) = run(shared_server, "dlq", "peek", graves, "--key", "b", "-n", "1", "--json").stdout.splitlines()
        letter = json.loads(line)
        assert letter["attempts"][0]["error"] == "no such user"
        shown = run(shared_server, "dlq", "show", graves, letter["id"]).stdout.decode()
        assert "reason         max_attempts" in shown
        moved = run(shared_server, "redrive", graves, "--error", "timeout")
        assert moved.stdout.decode() == f'Moved 3 messages from "{graves}" to "{queue}"\n'
        assert (
            run(shared_server, "dlq", "purge", graves, "--yes").stdout.decode()
            == f'Removed 2 messages from "{graves}"\n'
        )
        refused = run(shared_server, "dlq", "redrive", queue)
        assert (refused.returncode, refused.stderr.decode()) == (1, f'Error: "{queue}" is not a dead-letter queue\n')

    def test_pauses_and_resumes(self, shared_server, client, queue):
        client.create_queue(queue)
        assert run(shared_server, "queue", "pause", queue).returncode == 0
        listed = json.loads(run(shared_server, "queue", "list", "--json").stdout)
        assert {each["name"]: each["paused"] for each in listed}[queue] is True
        assert run(shared_server, "queue", "resume", queue).returncode == 0
        assert not client.queue_stats(queue).summary.paused

    @pytest.mark.parametrize("answer, left", [(b"y\n", 0), (b"n\n", 5)])
    def test_asks_before_it_removes_on_a_terminal(self, shared_server, client, queue, dead, answer, left):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "fila.cli.main", "dlq", "purge", f"{queue}.dlq"]
        environment = {**os.environ, "FILA_ADDR": shared_server.addr}
        with subprocess.Popen(
            command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        ) as process:
            os.write(ours, answer)
            _, asked = process.communicate(timeout=60)
        os.close(ours)
        os.close(theirs)
        assert b"Remove 5 messages from" in asked
        assert contents(client, f"{queue}.dlq")[0] == left


def test_a_long_redrive_shows_how_far_it_is(tmp_path):
    """On a terminal a bar is drawn and taken away again; what it says at the end stays."""
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        client.enqueue_many("q.dlq", [b"x"] * 3000)
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "fila.cli.main", "dlq", "redrive", "q.dlq", "--rate", "6000", "--yes"]
        environment = {**os.environ, "FILA_ADDR": server.addr, "TERM": "xterm"}
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment
        ) as process:
            said, _ = process.communicate(timeout=60)
        drawn = os.read(ours, 1 << 20)
        os.close(ours)
        os.close(theirs)
        assert said == b'Moved 3,000 messages from "q.dlq" to "q"\n'
        assert b"messages" in drawn
