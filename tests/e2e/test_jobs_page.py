"""What docs/jobs.md shows is what happens."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from fila.jobs.settings import QueueSettings, variables

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
LONG = 60.0


def block(name):
    return re.search(rf"<!-- {name} -->\n```python\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_quickstart_runs_as_it_is_printed(server, tmp_path):
    (tmp_path / "shop.py").write_text(block("quickstart").replace("localhost:5555", server.addr))
    env = {name: text for name, text in os.environ.items() if not name.startswith(("FILA_", "USE_"))}
    env["PYTHONUNBUFFERED"] = "1"
    subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, env=env, check=True, timeout=LONG)
    command = [sys.executable, "-m", "fila.cli.main", "worker", "shop:app"]
    out, log = tmp_path / "out.txt", tmp_path / "log.txt"
    with out.open("wb") as stdout, log.open("wb") as stderr:
        worker = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=stdout, stderr=stderr)
    try:
        deadline = time.monotonic() + LONG
        while log.read_text().count("done") < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        worker.send_signal(signal.SIGINT)
        assert worker.wait(LONG) == 0
    finally:
        worker.kill()
        worker.wait()
    printed = out.read_text()  # by two threads, so perhaps on one line
    assert "to ada@example.org: hello" in printed
    assert "to ada@example.org: half a second later" in printed
    assert "shop:app: 1 task on fila" in log.read_text()


def test_the_example_of_a_test_passes():
    subprocess.run([sys.executable, "-c", block("testing")], check=True, timeout=LONG)


def test_the_table_of_settings_is_complete_and_its_defaults_are_true():
    rows = re.findall(r"^\| `([\w.]+)` \| `([A-Z_]+)` \| `?([^`|]*?)`? \|", PAGE, re.MULTILINE)
    shown = {name: variable for name, variable, _ in rows}
    assert shown.pop("fila") == "USE_FILA_QUEUE"
    assert shown == variables()
    environ = {variable: default for _, variable, default in rows if default != "none"}
    with_broker = QueueSettings.from_env(environ | {"USE_FILA_QUEUE": "true"})
    assert with_broker == QueueSettings.from_env({"USE_FILA_QUEUE": "true"})
