"""`fila apply`: a file says how a broker should be set up, and the broker is so afterwards."""

import json
import subprocess
import sys

import pytest

from fila import Client
from fila.testing import ServerProcess

FILE = """
[queues.orders]
fairness_header = "tenant"
visibility_timeout_ms = "45s"
throttle_headers = ["provider"]
max_attempts = 7
script_file = "policy.lua"

[queues.mail]
retry_backoff = 2
paused = true

[throttles."provider:aws"]
rate = 50
burst = 100

[config]
"pricing.tier" = "gold"
"""
POLICY = "function on_enqueue(message) return {weight = 3} end\n"


@pytest.fixture
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server):
    with Client(server.addr, timeout=30) as client:
        yield client


@pytest.fixture
def run(server, tmp_path):
    def run(*arguments, code=0, file=FILE):
        (tmp_path / "queues.toml").write_text(file)
        (tmp_path / "policy.lua").write_text(POLICY)
        made = subprocess.run(
            [
                sys.executable,
                "-m",
                "fila.cli.main",
                "--addr",
                server.addr,
                "apply",
                tmp_path / "queues.toml",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert made.returncode == code, made.stdout + made.stderr
        return made.stdout + made.stderr

    return run


def test_the_broker_is_as_the_file_says(run, client):
    assert "Applied: 4 created, 1 changed" in run()
    orders, mail = client.queue_stats("orders"), client.queue_stats("mail")
    assert orders.config.fairness_header == "tenant"
    assert orders.config.visibility_timeout_ms == 45_000
    assert orders.config.throttle_headers == ("provider",)
    assert orders.config.max_attempts == 7
    assert orders.config.script == POLICY
    assert (mail.config.retry_backoff, mail.summary.paused) == (2.0, True)
    assert client.list_config() == {"throttle.provider:aws": "rate=50,burst=100", "pricing.tier": "gold"}


def test_applying_twice_changes_nothing(run):
    run("--check", code=1)
    run()
    assert run("--check") == run() == "Nothing differs\n"


def test_a_dry_run_changes_nothing(run, client):
    shown = run("--dry-run")
    assert '+ queue "orders"' in shown
    assert "Would be 4 created, 1 changed. Nothing was changed" in shown
    assert client.list_queues() == []
    assert client.list_config() == {}


def test_only_what_differs_is_changed(run, client):
    """And messages stay."""
    run()
    client.enqueue("orders", {"tenant": "acme"}, b"x")
    client.update_queue("orders", quantum=9)
    new = FILE.replace('"45s"', "60000").replace("rate = 50", "rate = 60").replace("paused = true", "paused = false")
    shown = run(file=new)
    assert "visibility_timeout_ms: 45000 -> 60000" in shown
    assert 'value: "rate=50,burst=100" -> "rate=60,burst=100"' in shown
    assert "paused: true -> false" in shown
    stats = client.queue_stats("orders")
    assert (stats.config.visibility_timeout_ms, stats.config.quantum, stats.summary.depth) == (60_000, 9, 1)


def test_a_limit_that_is_written_otherwise_does_not_differ(run, client):
    client.set_config("throttle.provider:aws", "50,100")
    assert "throttle" not in run("--dry-run").replace("throttle_headers", "")


def test_scripts_of_two_files(run, client, tmp_path):
    (tmp_path / "fail.lua").write_text("function on_failure(message) return {action = 'dlq'} end\n")
    two = '[queues.jobs]\non_enqueue_file = "policy.lua"\non_failure_file = "fail.lua"\n'
    run(file=two)
    assert run("--check", file=two) == "Nothing differs\n"
    assert "on_failure" in client.queue_stats("jobs").config.script


def test_prune_removes_what_the_sections_of_the_file_lack(run, client):
    """Queues stay, and so do sections that the file does not have."""
    client.create_queue("old")
    client.set_config("throttle.old", "rate=1")
    client.set_config("old.entry", "1")
    run()
    assert set(client.list_config()) == {"throttle.provider:aws", "throttle.old", "pricing.tier", "old.entry"}
    only = '[throttles."provider:aws"]\nrate = 50\nburst = 100\n'
    assert "Add --yes to confirm" in run("--prune", code=2, file=only)
    run("--prune", "--yes", file=only)
    assert set(client.list_config()) == {"throttle.provider:aws", "pricing.tier", "old.entry"}
    run("--prune", "--yes")
    assert set(client.list_config()) == {"throttle.provider:aws", "pricing.tier"}
    assert {queue.name for queue in client.list_queues()} >= {"old", "orders", "mail"}


def test_rights(run, server, client, monkeypatch):
    admin = client.auth.create_key("admin", ["admin"]).token
    rights = (
        FILE
        + """
[roles.shipping]
grants = ["enqueue=orders.**", "configure=throttle:carrier.*"]

[principals.billing]
roles = ["producer:billing.**", "shipping"]
limits = { messages_per_second = 500 }
"""
    )
    assert "key" in run(code=1, file=rights)
    monkeypatch.setenv("FILA_API_KEY", admin)
    assert "Applied: 6 created, 1 changed" in run(file=rights)
    assert run("--check", file=rights) == "Nothing differs\n"
    with Client(server.addr, api_key=admin) as root:
        principals = {each.name: each for each in root.auth.list_principals()}
        assert set(principals["billing"].roles) == {"producer:billing.**", "shipping"}
        assert principals["billing"].limits == {"messages_per_second": 500}
    without = rights.replace("limits = { messages_per_second = 500 }", "")
    assert "limits: {messages_per_second = 500} -> {}" in run(file=without)


def test_one_that_is_refused_says_how_far_it_came_and_can_be_repeated(run, client):
    wrong = FILE.replace("max_attempts = 7", "max_attempts = 99999999") + "\n[queues.zzz]\nquantum = 5\n"
    shown = run(code=1, file=wrong)
    assert "Applied 0 of" in shown
    assert "max_attempts" in shown
    run(file=wrong.replace("99999999", "9"))
    assert client.queue_stats("zzz").config.quantum == 5


@pytest.mark.parametrize(
    "file, said",
    [
        ("[queues.q]\nquantun = 1", 'unknown key queues."q".quantun'),
        ("[queues.q]\nquantum = 'x'", "must be a whole number"),
        ("[queues.q]\nquantum = true", "must be a whole number"),
        ("[queues.q]\nvisibility_timeout_ms = 'soon'", "is not a time such as"),
        ("[queues.q]\nscript_file = '/nowhere.lua'", "cannot be read"),
        ("[queues.q]\nscript_file = 'policy.lua'\non_failure_file = 'policy.lua'", "not both"),
        ("[queues.q]\nthrottle_headers = 'x'", "must be a list of texts"),
        ("[queue.q]\n", "unknown section queue"),
        ("[throttles.t]\nburst = 3", "needs rate, max_in_flight, or both"),
        ("[throttles.t]\nrate = 'fast'", "must be a number"),
        ("[config]\na = 3", "must be a text"),
        ("[principals.p]\nlimits = {open_calls = 'many'}", "must be a whole number"),
        ("[queues", "Expected"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_before_anything_is_changed(run, client, file, said):
    shown = run(code=1, file=f"[queues.first]\nquantum = 5\n{file}")
    assert said in shown
    assert "queues.toml: " in shown
    assert client.list_queues() == []


def test_the_difference_as_json(run):
    told = json.loads(run("--dry-run", "--json"))
    assert told["applied"] is False
    assert [(each["change"], each["kind"], each["name"]) for each in told["changes"]][:2] == [
        ("+", "queue", "orders"),
        ("+", "queue", "mail"),
    ]


def test_ping(server):
    command = [sys.executable, "-m", "fila.cli.main", "--addr", server.addr, "ping", "-n", "3", "--interval", "0"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert shown.count(f"answer from {server.addr}") == 3
    assert "3 answers, min / median / max:" in shown
    server.stop()
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 3
