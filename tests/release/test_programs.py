"""The programs run on a machine that has no Python."""

import hashlib
import json
import re
import shutil
import signal
import socket
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.release.conftest import ROOT
from tests.support.programs import broker, round_trip
from tests.support.roots import ENVIRONMENT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
HOOK = 'function on_enqueue(message) return { fairness_key = "from-lua" } end'


def install(root, dist):
    """Copies the two files, as somebody would."""
    for name in ("fila-server", "fila"):
        [file] = [path for path in dist.glob(f"{name}-*-*") if re.fullmatch(rf"{name}-(linux|darwin)-\w+", path.name)]
        shutil.copy(file, root.folder / "usr/local/bin" / name)


def test_one_file_each_runs_without_a_python(root, dist, tmp_path):
    """A message through the store, the event loop and Lua, which are in the file; another one outlives a restart."""
    install(root, dist)
    assert root.output("fila-server", "--version") == f"fila-server {VERSION}\n"
    assert root.output("fila", "--version") == f"fila {VERSION}\n"
    server = root.command("fila-server", "--listen", "{addr}", "--data-dir", "/var/lib/fila")
    with broker(server, root.command("fila"), ENVIRONMENT, tmp_path) as found:
        round_trip(root.command("fila"), found)
        (root.folder / "hook.lua").write_text(HOOK)
        root.output("fila", "queue", "create", "scripted", "--on-enqueue", "/hook.lua", env=found)
        root.output("fila", "enqueue", "scripted", "by a script", env=found)
        assert "from-lua" in root.output("fila", "stats", "scripted", env=found)
    with broker(server, root.command("fila"), ENVIRONMENT, tmp_path) as found:
        assert "by a script" in root.output("fila", "consume", "scripted", "--count", "1", env=found)


@pytest.mark.parametrize("folder", [False, True], ids=["one file", "the folder"])
def test_the_console_is_in_the_programs(folder, root, dist, programs, tmp_path):
    """Beside the server, which takes it along when it ends; and by itself."""
    if folder:
        shutil.copytree(programs, root.folder / "opt/fila", symlinks=True)
    else:
        install(root, dist)
    server, fila = (f"{'/opt/fila/' if folder else ''}{name}" for name in ("fila-server", "fila"))
    beside, alone = free_ports()
    command = root.command(server, "--listen", "{addr}", "--data-dir", "/data", "--console", f"127.0.0.1:{beside}")
    with broker(command, root.command(fila), ENVIRONMENT, tmp_path) as found:
        round_trip(root.command(fila), found)
        assert "orders" in page(beside, "/queue?name=orders")
        assert "font-family" in page(beside, "/static/console.css")
        console = subprocess.Popen(root.command(fila, "console", "--listen", f"127.0.0.1:{alone}"), env=found)
        try:
            assert "orders" in page(alone, "/queue?name=orders")
        finally:
            console.send_signal(signal.SIGINT)
            console.wait(60)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", beside)).close()


def free_ports():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def page(port, path):
    """What the console shows, as soon as it is there."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "the console does not answer"
            time.sleep(0.1)


def test_the_first_key_is_made_without_a_server(root, dist):
    """`fila auth init --data-dir` opens the store itself."""
    install(root, dist)
    made = root.run("fila", "auth", "init", "--data-dir", "/var/lib/fila")
    assert made.returncode == 0, made.stderr
    assert (root.folder / "var/lib/fila").is_dir()


def test_what_needs_a_python_says_so(root, dist):
    """Applications have libraries of their own, which no file of ours can hold."""
    install(root, dist)
    for command in (("reconcile", "status"), ("pipeline", "sample", "data")):
        refused = root.run("fila", *command)
        assert refused.returncode == 1
        assert re.fullmatch(r"Error: .* pip install 'fila\[\w+\]'.*\n", refused.stderr), refused.stderr


def test_the_folder_runs_as_the_files_do(root, programs, tmp_path):
    shutil.copytree(programs, root.folder / "opt/fila", symlinks=True)
    server = root.command("/opt/fila/fila-server", "--listen", "{addr}", "--data-dir", "/data")
    with broker(server, root.command("/opt/fila/fila"), ENVIRONMENT, tmp_path) as found:
        round_trip(root.command("/opt/fila/fila"), found)


def test_the_folder_brings_both_licences(programs):
    assert "AFFERO" in (programs / "LICENSE").read_text()
    assert "Apache License" in (programs / "LICENSE.Apache-2.0").read_text()
    assert (programs / "LICENSING.md").exists()


def test_the_bill_of_materials_names_what_is_in_the_programs(dist, programs):
    """Each Python package by its version, and each shared library by its bytes. Build tools are not in it."""
    [document] = dist.glob("fila-*.cdx.json")
    bill = json.loads(document.read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", VERSION)
    components = {each["name"].lower(): each for each in bill["components"]}
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()[1:])
    for name in ("rocksdict", "lupa", "uvloop", "grpcio", "protobuf"):
        assert components[name]["version"] == pins[name]
    assert not {"pyinstaller", "pip", "setuptools"} & set(components)
    folders = {path.name.partition("-")[0] for path in (programs / "_internal").iterdir() if path.is_dir()}
    inside = {name.replace("_", "-").lower() for name in folders}
    assert not (inside & {name.lower() for name in pins}) - set(components), "a build tool got in"
    for library in Path(programs / "_internal").glob("lib*.so*"):
        [found] = components[library.name.lower()]["hashes"]
        assert found["content"] == hashlib.sha256(library.read_bytes()).hexdigest()


def test_checksums_cover_every_file(dist):
    sums = dict(reversed(line.split(maxsplit=1)) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
