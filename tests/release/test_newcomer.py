"""A newcomer's first minutes with the README, on a Debian that has nothing but its Python, make and git.

Every command is taken from the page. How long each took is printed (`pytest -s`).
"""

import re
import shutil
import subprocess
import time

import pytest

from fila.testing import ServerProcess
from tests.release.conftest import ROOT
from tests.support.dockerfile import Image
from tests.support.pages import blocks

README = (ROOT / "README.md").read_text()
LONG_S = 1100
BARE = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3 python3-venv make git"


def section(title):
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


[VENV] = re.findall(r"`(python3 -m venv [^`]+)`", section("Install"))
[CHECKOUT] = re.findall(r"`(pip install packages/[^`]+)`", section("Install"))
START, COMMANDS = [block.text for block in blocks(section("Quickstart")) if block.kind == "sh"]
[CODE] = [block.text for block in blocks(section("Quickstart")) if block.kind == "python"]
DEMO = blocks(section("From a checkout"))[0].text.splitlines()[0]


class Newcomer:
    """Types commands into the checkout in the root."""

    def __init__(self, root):
        variables = root.reach_the_network()
        self.machine = Image(root, variables, workdir="/home/fila")
        folder = root.folder / "home/fila"
        for name in listed():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)

    def types(self, text, **variables):
        """What a shell prints that was given the text. Each of its commands has to succeed."""
        machine = Image(self.machine.root, {**self.machine.env, **variables}, self.machine.workdir)
        began = time.monotonic()
        done = subprocess.run(
            machine.command("bash", "-ec", text), check=False, capture_output=True, text=True, timeout=LONG_S
        )
        print(f"{time.monotonic() - began:6.1f} s  {text.strip().splitlines()[0]}")
        assert done.returncode == 0, (text, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout


def listed():
    """The files of a clone."""
    told = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [name for name in told.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture
def newcomer(root):
    newcomer = Newcomer(root)
    newcomer.types(BARE)
    subprocess.run(["mount", "--bind", "/proc", str(root.folder / "proc")], check=True)
    try:
        yield newcomer
    finally:
        subprocess.run(["umount", "--lazy", str(root.folder / "proc")], check=True)


def test_from_nothing_to_fair_delivery_by_the_readme(newcomer):
    """Installed, started, and the quiet tenant overtakes the noisy one; then the demo with its crash."""
    newcomer.types(f"{VENV} && {CHECKOUT}")
    holder = ServerProcess()  # never started: it keeps a port free
    activate = VENV.split("&&")[1].strip()
    try:
        start = START.replace("127.0.0.1:5555", holder.addr)
        quickstart = f"{activate}\n{start.strip()} &\ntrap 'kill %1; wait' EXIT\n"
        quickstart += "for i in $(seq 100); do fila ping >/dev/null 2>&1 && break; sleep 0.2; done\n"
        code = CODE.replace("localhost:5555", holder.addr)
        printed = newcomer.types(f"{quickstart}python - <<'END'\n{code}END\n{COMMANDS}", FILA_ADDR=holder.addr)
    finally:
        holder.close()
    assert "quiet password reset" in printed
    assert [line for line in printed.splitlines() if line.startswith("noisy newsletter")] == [
        f"noisy newsletter {number}" for number in range(7)
    ]
    assert "hello" in printed
    assert "PASSED" in newcomer.types(DEMO)
