"""The two distributions, built from this tree and installed into empty environments."""

import os
import re
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

from fila.testing import ServerProcess

ROOT = Path(__file__).parents[2]
CLIENT, WHOLE = "fila-client", "fila"
OLDEST_PROTOBUF = re.search(r'"protobuf>=([\d.]+)', (ROOT / "packages/fila-client/pyproject.toml").read_text())[1]

ROUND_TRIP = """
import sys

from fila import Client

with Client(sys.argv[1]) as client:
    client.create_queue(sys.argv[2], fairness_header="tenant")
    client.enqueue(sys.argv[2], {"tenant": "acme"}, b"an order")
    with client.consume(sys.argv[2]) as messages:
        message = next(messages)
        message.ack()
    stats = client.queue_stats(sys.argv[2])
    print(message.fairness_key, message.payload.decode(), stats.summary.depth)
    assert not [name for name in sys.modules if name.split(".")[0] == "grpc"], "grpcio is not needed"
"""


APP = """
from fila.jobs import App

app = App()


@app.task
def greet(name):
    print(name)
"""

#: What needs an extra: the command, and the line that names the extra.
NEEDS = {
    ("reconcile", "worker"): r"fila reconcile needs the package [\w.]+: pip install 'fila\[reconcile\]'",
    ("reconcile", "status"): r"fila reconcile needs the package [\w.]+: pip install 'fila\[reconcile\]'",
    ("pipeline", "sample", "data"): r".* need.* the package [\w.]+.*: pip install 'fila\[spark\]'.*",
    (
        "pipeline",
        "fairness",
        "--journal",
        "j",
        "--out",
        "o",
    ): r".* need.* the package .*: pip install 'fila\[spark\]'.*",
    ("journal", "export", "j.parquet"): r"fila journal export needs .* pyarrow: pip install 'fila-client\[export\]'",
    ("console",): r"fila console needs the package [\w.]+: pip install 'fila\[console\]'",
    ("worker", "shop:app"): r".*the package redis is not installed: pip install 'fila-client\[redis\]'",
}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, **options)


def modules_of(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def licence_of(wheel):
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return re.search(r"^License-Expression: (.*)$", archive.read(metadata).decode(), re.MULTILINE)[1]


def environment(folder, *requirements):
    """A new environment with nothing but these."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    assert installed.returncode == 0, installed.stderr
    return python


def assert_missing_extras_are_named(python, folder):
    """Each command whose extra is not installed says so in one line, without a traceback."""
    (folder / "shop.py").write_text(APP)
    for command, line in NEEDS.items():
        env = {**os.environ, "FILA_JOBS_URL": "redis://127.0.0.1:1/0"}
        done = run(python.with_name("fila"), *command, cwd=folder, env=env)
        assert re.fullmatch(rf"Error: {line}\n", done.stderr), (command, done.stderr)
        assert done.returncode in {1, 3}
    assert run(python.with_name("fila"), "--help").returncode == 0


def test_the_client_holds_no_file_of_the_broker(wheels):
    """Each file is in one distribution; those of the client are in folders that LICENSING.md names as Apache-2.0."""
    client, whole = modules_of(wheels[CLIENT]), modules_of(wheels[WHOLE])
    assert not client & whole
    [row] = [line for line in (ROOT / "LICENSING.md").read_text().splitlines() if f"| `{CLIENT}` |" in line]
    apache = tuple(path.removeprefix("src/") for path in re.findall(r"`(src/[^`]+)`", row))
    assert {name for name in client if not name.startswith(apache)} == {"fila/py.typed"}
    assert not {name for name in whole if name.startswith(apache)}
    assert (licence_of(wheels[CLIENT]), licence_of(wheels[WHOLE])) == ("Apache-2.0", "AGPL-3.0-or-later")


def test_they_have_one_version(wheels):
    """The whole needs the client of its own version."""
    [client], [whole] = (set(re.findall(r"-([\d.]+)-py3", wheels[name].name)) for name in (CLIENT, WHOLE))
    assert client == whole
    assert f'"fila-client=={whole}"' in (ROOT / "pyproject.toml").read_text()


def test_together_they_hold_every_module(wheels):
    """Nothing of the tree is left out, scripts and types included."""
    kinds = ("*.py", "*.pyi", "*.lua", "*.properties", "py.typed", "rocksdb/*", "static/*", "templates/*")
    tree = {str(path.relative_to(ROOT / "src")) for kind in kinds for path in (ROOT / "src").rglob(kind)}
    assert modules_of(wheels[CLIENT]) | modules_of(wheels[WHOLE]) == tree


@pytest.mark.parametrize("protobuf", [OLDEST_PROTOBUF, ""], ids=["oldest-protobuf", "newest-protobuf"])
def test_the_client_alone_talks_to_a_broker(wheels, tmp_path, protobuf):
    """With the oldest protobuf that it allows and the newest, without grpcio, and with the `fila` command."""
    python = environment(tmp_path / "venv", wheels[CLIENT], f"protobuf=={protobuf}" if protobuf else "protobuf")
    with ServerProcess() as server:
        done = run(python, "-c", ROUND_TRIP, server.addr, "orders")
        assert (done.stdout, done.stderr) == ("acme an order 0\n", "")
        assert run(python, "-c", "import fila; print(fila.__version__)").stdout.strip()
        listed = run(python.with_name("fila"), "--addr", server.addr, "queue", "list")
        assert "orders" in listed.stdout
    assert_missing_extras_are_named(python, tmp_path)


def test_a_bare_install_of_all_says_what_the_server_needs(wheels, tmp_path):
    """One line that names the extra, no traceback; the SDK works."""
    python = environment(tmp_path / "venv", wheels[CLIENT], wheels[WHOLE])
    assert run(python, "-c", "from fila import Client; print(Client.__name__)").stdout == "Client\n"
    server = run(python.with_name("fila-server"), "--listen", "127.0.0.1:0", cwd=tmp_path)
    assert server.returncode == 1
    assert re.fullmatch(r"Error: the server needs the package \w+: pip install 'fila\[server\]'\n", server.stderr)
    assert run(python.with_name("fila-server"), "--help").returncode == 0
    assert_missing_extras_are_named(python, tmp_path)
