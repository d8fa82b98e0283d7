"""The commands as people type them."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import httpx
import pytest
from click.testing import CliRunner

from fila.cli.main import cli
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.simulator import truth
from fila.reconcile.simulator.server import TOKEN
from fila.reconcile.store import Store, open_engine, upgrade
from fila.testing import ServerProcess
from tests.helpers.reconcile import NOW, OVERCLAIMED, attempt, missing, submission


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fila.reconcile.logs.configure", lambda level: None)
    return lambda *words: CliRunner().invoke(cli, ["reconcile", *words])


@pytest.fixture
def filled(tmp_path):
    """A store with one report that is done and one that waits."""
    engine = open_engine(f"sqlite:///{tmp_path}/reconcile.db")
    upgrade(engine)
    store = Store(engine, DEFAULTS)
    done, waiting = submission(), submission("bob", "p-2")
    store.intake.submit([done, waiting], NOW)
    store.attempts.record(attempt(done.report, observed=OVERCLAIMED))
    store.attempts.record(missing(waiting.report, retry_at_ms=NOW + 1_000))
    store.close()
    return done.report.report_id


class TestStatus:
    def test_an_empty_store_is_made_and_said_to_be_empty(self, run):
        result = run("status")
        assert (result.exit_code, result.stderr) == (0, "No reports yet.\n")

    def test_outcomes_alerts_and_trust_are_shown(self, run, filled):
        lines = [line.split() for line in run("status").stdout.splitlines()]
        assert ["AFFILIATE_OVERCLAIMED", "1", "0"] in lines
        assert ["MISSING_PLATFORM_DATA", "0", "1"] in lines
        assert ["fraud", "critical", "1"] in lines
        assert ["ada", "0.40", "1"] in lines

    def test_as_json(self, run, filled):
        shown = json.loads(run("status", "--json").stdout)
        assert shown["outcomes"]["AFFILIATE_OVERCLAIMED"] == {"done": 1, "open": 0}
        assert shown["alerts"] == [{"kind": "fraud", "severity": "critical", "count": 1}]
        assert shown["least_trusted"][0] == {"affiliate_id": "ada", "trust": 0.4, "reports": 1}

    def test_one_report_with_its_attempts(self, run, filled):
        text = run("status", filled).stdout
        assert "1. 2023-11-14 22:13:20 UTC  AFFILIATE_OVERCLAIMED: views: 1,000 claimed, 400 on the platform" in text
        assert json.loads(run("status", filled, "--json").stdout)["attempts"][0]["level"] == "critical"
        result = run("status", "0" * 32)
        assert (result.exit_code, result.stderr) == (1, f'Error: report "{"0" * 32}" does not exist\n')


class TestRefusals:
    @pytest.mark.parametrize(
        "words, code, complaint",
        [
            (["worker"], 2, "A queue in memory cannot be shared"),
            (["serve", "--listen", "here"], 2, "is not an address"),
            (["serve", "--config", "none.toml"], 1, "cannot read none.toml"),
            (["serve", "--db", "mysql://x"], 1, "not supported"),
            (["serve", "--queue", "kafka://x"], 1, "queue.url: expected"),
            (["status", "--db", "postgresql://x:hunter2@127.0.0.1:1/x"], 1, "cannot use postgresql"),
        ],
    )
    def test_what_cannot_work_is_said_in_one_line(self, run, words, code, complaint):
        result = run(*words)
        assert result.exit_code == code
        assert complaint in result.stderr
        assert "Traceback" not in result.stderr
        assert "hunter2" not in result.stderr


@contextlib.contextmanager
def command(folder, *words):
    """A command of the service, up to a graceful end. Gives what it says of itself, and then its log."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fila.cli.main", "reconcile", *words], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        yield next(line for line in process.stderr if not line.startswith("{"))
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=40)
        print(log)
    assert process.returncode == 0
    assert all(json.loads(line)["level"] == "info" for line in log.splitlines() if line.startswith("{"))


def configured(folder, simulator, platform):
    (folder / "reconcile.toml").write_text(
        f'[platforms.{platform}]\nbase_url = "{simulator.url}/{platform}"\ntoken = "{TOKEN}"\ninternal = true\n'
    )
    return ["--config", "reconcile.toml"]


def reconcile_one(greeting, platform):
    """Send a report to the API that greets so, and wait for its end."""
    url = next(word for word in greeting.split() if word.startswith("http://"))
    report = dict.fromkeys(("views", "clicks", "conversions"), 0)
    report |= {"affiliate_id": "ada", "platform": platform, "post_id": "p"}
    report_id = httpx.post(f"{url}/v1/reports", json=report).raise_for_status().json()["report_id"]
    deadline = time.monotonic() + 30
    while not (shown := httpx.get(f"{url}/v1/reports/{report_id}").json())["done"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert httpx.get(f"{url}/docs").status_code == 200
    return shown


def test_a_report_goes_all_the_way_through_one_process(tmp_path, simulator, platform):
    """`serve` on its defaults: a SQLite file, a queue in memory, workers beside the API."""
    options = configured(tmp_path, simulator, platform)
    with command(tmp_path, "serve", "--listen", "127.0.0.1:0", *options) as greeting:
        assert reconcile_one(greeting, platform)["status"] == "DISCREPANCY_HIGH"


def test_a_report_goes_all_the_way_through_a_broker(tmp_path, simulator, platform):
    """API and worker as two processes, with jobs in a queue of a real broker."""
    options = configured(tmp_path, simulator, platform)
    with ServerProcess() as server:
        options += ["--queue", f"fila://{server.addr}/claims"]
        serve = command(tmp_path, "serve", "--listen", "127.0.0.1:0", *options)
        with serve as greeting, command(tmp_path, "worker", *options):
            assert reconcile_one(greeting, platform)["status"] == "DISCREPANCY_HIGH"


def test_simulated_platforms_answer_until_they_are_stopped(tmp_path):
    with command(tmp_path, "simulate", "--listen", "127.0.0.1:0") as greeting:
        url = next(word for word in greeting.split() if word.startswith("http://")).removesuffix("/NAME,")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx.get(f"{url}/clipshare/v1/posts/p-1/metrics", headers=headers)
        assert answer.json()["views"] == truth("clipshare", "p-1")[0]


class TestKeys:
    def test_a_key_is_printed_once_and_listed_without_its_secret(self, run):
        made = run("key", "create", "--affiliate", "ada", "--ttl", "30d")
        token = made.stdout.strip()
        assert (made.exit_code, token.startswith("fila_ada-")) == (0, True)
        [shown] = json.loads(run("key", "list", "--json").stdout)
        assert (shown["role"], shown["affiliate_id"], shown["state"]) == ("affiliate", "ada", "active")
        assert shown["expires_at"] is not None
        assert shown["last_used_at"] is None
        listed = run("key", "list").stdout
        assert shown["id"] in listed
        assert token[-64:] not in listed

    def test_rotated_and_revoked(self, run):
        run("key", "create", "--role", "operator")
        [first] = json.loads(run("key", "list", "--json").stdout)
        assert run("key", "rotate", first["id"], "--overlap", "0s").stdout.startswith("fila_operator-")
        states = {each["id"]: each["state"] for each in json.loads(run("key", "list", "--json").stdout)}
        assert states.pop(first["id"]) == "expired"
        [second] = states
        assert run("key", "revoke", second, "--yes").exit_code == 0
        again = run("key", "revoke", second, "--yes")
        assert (again.exit_code, again.stderr) == (1, f'Error: key "{second}" does not exist or is revoked\n')

    @pytest.mark.parametrize(
        "words, complaint",
        [
            (["create"], "either --role or --affiliate"),
            (["create", "--role", "viewer", "--affiliate", "ada"], "either --role or --affiliate"),
            (["create", "--affiliate", "a/b"], "not an affiliate id"),
            (["create", "--role", "viewer", "--ttl", "soon"], "is not a time such as"),
        ],
    )
    def test_what_cannot_be_a_key_is_refused(self, run, words, complaint):
        result = run("key", *words)
        assert result.exit_code == 2
        assert complaint in result.stderr
        assert run("key", "list").stderr == "No keys yet: the API serves this machine alone.\n"
