"""Clients of the last release with this server, and clients of this tree with the server of the last release: real
processes, each with its own code.

The last release is the newest tag `v...`; as long as there is none, the commit that made the released contract
(proto/released) what it is. Its code comes out of git.
"""

import os
import subprocess
import sys

import pytest

from fila.testing import ServerProcess
from tests.support.pages import ROOT

EXERCISE = """
import sys
import fila
from fila import Client, OutgoingMessage, FilaError

assert fila.__file__.startswith(sys.argv[2]), fila.__file__
with Client(sys.argv[1], timeout=30) as client:
    client.create_queue("orders", fairness_header="tenant", max_attempts=2, visibility_timeout_ms=60_000)
    one = client.enqueue("orders", {"tenant": "acme"}, b"one", dedup_key="k")
    assert client.enqueue("orders", {"tenant": "acme"}, b"one", dedup_key="k") == one
    ids = client.enqueue_many("orders", [OutgoingMessage(b"%d" % n, {"tenant": f"t{n % 3}"}) for n in range(500)])
    assert len(set(ids)) == 500
    seen, first = set(), True
    with client.consume("orders", max_in_flight=50) as messages:
        for message in messages:
            if message.payload == b"7":
                message.nack("will not do")
            elif message.payload == b"8":
                message.reject("never")
            elif message.payload == b"9" and first:
                first = False
                message.release()
            else:
                message.extend(60_000)
                message.ack()
                seen.add(message.id)
            if len(seen) == 499:
                break
    dead = client.peek("orders.dlq", payload_bytes=10).messages
    assert {letter.payload for letter in dead} >= {b"8"}
    client.redrive("orders.dlq")
    client.set_config("throttle.provider:acme", "rate=5,burst=10")
    assert client.list_config("throttle.") == {"throttle.provider:acme": "rate=5,burst=10"}
    client.update_queue("orders", quantum=3)
    client.pause_queue("orders")
    assert client.queue_stats("orders").summary.paused
    assert {queue.name for queue in client.list_queues()} == {"orders", "orders.dlq"}
    client.create_queue("written")
    writing = client.transaction("writer", 0)
    part = writing.stage("written", [b"a", b"b"])
    assert writing.commit([part]) is True
    assert writing.commit([part]) is False
    claim = client.group("written", "readers").claim(0, max_messages=2, lease_ms=60_000)
    assert claim.messages == 2
    assert client.auth.who_am_i() is not None
    try:
        client.enqueue("nowhere", {}, b"x")
    except FilaError as error:
        assert type(error).__name__ == "QueueNotFoundError", type(error)
    else:
        raise AssertionError("a queue that does not exist took a message")
    client.delete_queue("orders", force=True)
print("works")
"""


def git(*args):
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, check=False)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """The folder with the code of the last release."""
    tagged = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    found = tagged if tagged.returncode == 0 else git("log", "-1", "--format=%H", "--", "proto/released")
    archive = git("archive", found.stdout.decode().strip(), "src")
    if archive.returncode or git("rev-parse", "--is-shallow-repository").stdout.strip() != b"false":
        assert "CI" not in os.environ, "the history of the repository is needed"
        pytest.skip("needs the history of the repository")
    folder = tmp_path_factory.mktemp("release")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "src"


def exercise(server, code):
    done = subprocess.run(
        [sys.executable, "-c", EXERCISE, server.addr, str(code)],
        env=os.environ | {"PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "works\n", done.stdout + done.stderr


def test_a_client_of_the_last_release_works_with_this_server(release, tmp_path):
    with ServerProcess(tmp_path) as server:
        exercise(server, release)


def test_a_client_of_this_tree_works_with_the_server_of_the_last_release(release, tmp_path):
    with ServerProcess(tmp_path, env={"PYTHONPATH": str(release)}) as server:
        exercise(server, ROOT / "src")


def test_this_client_works_with_this_server(tmp_path):
    """So that a failure above is one of compatibility."""
    with ServerProcess(tmp_path) as server:
        exercise(server, ROOT / "src")
