"""A worker of jobs and the reconciliation service, as processes that say all they can: their logs tell no secret."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from fila import Client
from fila.reconcile.api.models import EXAMPLE
from fila.testing import ServerProcess
from tests.e2e.support import eventually
from tests.support.secrets import MARK, lines_with

LOUD = {"PYTHONASYNCIODEBUG": "1", "PYTHONDEVMODE": "1", "PYTHONUNBUFFERED": "1"}

PROGRAM = """
from fila.jobs import App, RetryPolicy

app = App()

@app.task(retry=RetryPolicy(max_attempts=1))
def work(text, **more):
    if "fail" in text:
        raise RuntimeError("no")
    if "stumble" in text:
        more["nothing"]
"""


@contextmanager
def process(folder, *arguments, **variables):
    """A command of ours. Yields the path of its log."""
    log = folder / "process.log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    with log.open("ab") as stream:
        started = subprocess.Popen(
            [sys.executable, "-m", "fila.cli.main", *arguments],
            cwd=folder,
            env=clean | LOUD | variables,
            stdout=stream,
            stderr=stream,
        )
    try:
        yield log
    finally:
        started.terminate()
        try:
            started.wait(60)
        finally:
            started.kill()
            started.wait()
    print(log.read_text())


@pytest.mark.timeout(180)
def test_the_log_of_a_worker(tmp_path):
    """Jobs that end well, fail, or are no jobs at all, on a broker that needs a key."""
    (tmp_path / "shop.py").write_text(PROGRAM)
    with ServerProcess() as server:
        with Client(server.addr) as client:
            key = client.auth.create_key("shop", ["admin"]).token
        variables = {"FILA_JOBS_URL": f"fila://{server.addr}", "FILA_API_KEY": key}
        with process(tmp_path, "worker", "shop:app", "--verbose", **variables) as log:
            eventually(lambda: "Waiting for jobs" in log.read_text(), "a worker")
            enqueue = "\n".join(
                f"shop.work.enqueue('{MARK} {kind}', more='{MARK}')" for kind in ("", "fail", "stumble")
            )
            code = f"import shop\n{enqueue}"
            subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | variables, check=True)
            with Client(server.addr, api_key=key) as client:
                [queue] = [each.name for each in client.list_queues() if not each.name.endswith(".dlq")]
                for payload in (MARK, json.dumps({"task": MARK}), json.dumps([MARK]), f'{{"{MARK}'):
                    client.enqueue(queue, {"name": MARK}, payload.encode())
                eventually(lambda: client.queue_stats(queue).summary.depth == 0, "an empty queue")
            eventually(lambda: log.read_text().count("not a job") >= 4, "messages that are no jobs are told")
        told = log.read_text()
    assert all(word in told for word in ("done", "dead", "Traceback"))
    assert lines_with({MARK, key.rpartition("_")[2]}, told) == []


class Platform(BaseHTTPRequestHandler):
    """Answers with what is no answer."""

    def do_GET(self):
        body = f'{{"{MARK}": "{MARK}"'.encode()
        self.send_response(200 if "1024" in self.path else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def platform():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.timeout(180)
def test_the_log_of_reconciliation(tmp_path):
    """Reports that are taken, refused and tried, with a platform that answers nonsense, and requests without a key."""
    options = ["--config", str(tmp_path / "reconcile.toml"), "--db", f"sqlite:///{tmp_path}/reconcile.db"]
    with platform() as port:
        (tmp_path / "reconcile.toml").write_text(
            f'[platforms.clipshare]\nbase_url = "http://127.0.0.1:{port}/x"\ntoken = "{MARK}token"\ninternal = true\n'
        )
        made = subprocess.run(
            [sys.executable, "-m", "fila.cli.main", "reconcile", "key", "create", "--role", "operator", *options[2:]],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        key = made.stdout.strip()
        with process(tmp_path, "reconcile", "serve", "--listen", "127.0.0.1:0", *options) as log:
            url = eventually(lambda: next((w for w in log.read_text().split() if w.startswith("http://")), None), "API")
            with httpx.Client(base_url=url, timeout=30) as http:
                good = {"Authorization": f"Bearer {key}"}
                for report in (EXAMPLE, EXAMPLE | {"post_id": "other", "campaign_id": MARK, "idempotency_key": MARK}):
                    assert http.post("/v1/reports", json=report, headers=good).status_code == 202
                refused = [
                    http.post("/v1/reports", json=EXAMPLE | {MARK: MARK}, headers=good),
                    http.post("/v1/reports", json=EXAMPLE | {"views": MARK}, headers=good),
                    http.post("/v1/reports", content=f'{{"{MARK}', headers=good),
                    http.post("/v1/reports", json=EXAMPLE, headers={"Authorization": f"Bearer {MARK}"}),
                    http.get(f"/v1/status?token={MARK}&key={key}"),
                    http.get(f"/v1/{MARK}", headers=good),
                ]
                assert {answer.status_code // 100 for answer in refused} == {4}
                eventually(lambda: "clipshare" in log.read_text(), "an attempt")
        told = log.read_text()
    assert "login failed" in told
    assert lines_with({MARK, key.rpartition("_")[2]}, told) == []
