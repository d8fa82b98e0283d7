"""The image: its Dockerfile is executed step by step, and what comes out runs as an engine would run it."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fila.testing import ServerProcess
from tests.release.conftest import ROOT
from tests.support.dockerfile import Builder
from tests.support.programs import LONG, output, round_trip


@pytest.fixture(scope="module")
def image(bare_root, tmp_path_factory):
    work = tmp_path_factory.mktemp("image")
    return Builder(ROOT / "deploy/docker/Dockerfile", ROOT, bare_root, work).image


def test_the_image_says_what_it_offers(image):
    assert (image.user, image.entrypoint) == ("fila", ["fila-server"])
    assert "5555" in image.ports
    assert image.volumes == [image.env["FILA_STORAGE__DATA_DIR"]] == ["/var/lib/fila"]


def test_the_image_has_neither_python_nor_build_tools(image):
    files = image.root.folder
    assert not list(files.glob("usr/bin/python*"))
    assert not (files / "usr/bin/ld").exists()
    assert not (files / "src").exists()


def healthy(image):
    return subprocess.run(image.command(*image.health), check=False, capture_output=True, timeout=LONG).returncode == 0


def test_a_container_serves_as_its_own_user_and_is_healthy(image):
    """Settings are overridden by variables; the broker is not root, writes to the volume, and stops on the signal."""
    ports = ServerProcess(), ServerProcess()  # never started: they keep two ports free
    port, page = (holder.port for holder in ports)
    image.env |= {
        "FILA_SERVER__LISTEN_ADDR": f"127.0.0.1:{port}",
        "FILA_TELEMETRY__PROMETHEUS_LISTEN": f"127.0.0.1:{page}",
    }
    assert not healthy(image)
    container = subprocess.Popen(image.command(*image.entrypoint))
    try:
        deadline = time.monotonic() + LONG
        while not healthy(image):
            assert container.poll() is None
            assert time.monotonic() < deadline
        assert Path(f"/proc/{container.pid}").stat().st_uid == 5555
        image.env["FILA_ADDR"] = f"127.0.0.1:{port}"
        round_trip(image.command("fila"), os.environ)
        container.send_signal(getattr(signal, image.stop_signal))
        assert container.wait(LONG) == 0
    finally:
        container.kill()
        container.wait()
        for holder in ports:
            holder.close()
    data = image.root.folder / "var/lib/fila"
    assert data.stat().st_uid == 5555
    assert list(data.iterdir())
    assert "fila-server" in output(image.command("fila-server", "--version"), os.environ)
