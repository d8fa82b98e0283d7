"""Runs what a page shows, as a reader would: in a shell in which nothing was activated, in a folder with `.venv`.

Rules of this file:
- A ```sh block is typed into one shell, so what it exports and where it goes stays for the next. Each of its commands
  has to succeed. A ```text block right behind it is what it prints; `...` stands for anything within a line, and for
  any lines when it is alone. If that begins with `Error: `, the block has to fail.
- A ```python block is the file of the name in its first line (`# produce.py`), or a program for `python -c`.
"""

import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from fila.testing import ServerProcess

ROOT = Path(__file__).parents[2]
LONG_S = 60

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """What stands between fences. `printed` is what it is said to print, if it is said."""

    kind: str
    text: str
    printed: str | None = None


def blocks(page):
    """The blocks of a page or a part of one, in order."""
    found = []
    for match in _BLOCK.finditer(page):
        if match[1] == "text" and found and found[-1].kind == "sh":
            found[-1] = found[-1]._replace(printed=match[2])
        else:
            found.append(Block(match[1], match[2]))
    return found


def checkout(folder):
    """A folder with `.venv` in it, as the commands of pages expect it."""
    folder.mkdir()
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    return folder


def environment(**variables):
    """Nothing activated, nothing set."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **variables}


def follow(page, workdir, ports=None, patience_s=LONG_S):
    """Do what a tutorial says. It makes a folder of its own with the log of its server, which stops at the end.

    `ports` are those of other servers, by the port that the page names. `patience_s` is for each block.
    """
    folder = checkout(workdir / "checkout")
    holder = ServerProcess(workdir)  # never started: it keeps a port free for us
    text = page.read_text()
    for named, port in {"5555": holder.port, **(ports or {})}.items():
        text = text.replace(named, str(port))
    try:
        with Shell(folder, environment(), patience_s) as shell:
            for step in blocks(text):
                if step.kind == "python":
                    name = step.text.splitlines()[0].removeprefix("# ")
                    [made] = folder.glob("*-tutorial")
                    (made / name).write_text(step.text)
                elif step.kind == "sh":
                    shell.check(step)
    finally:
        holder.close()
    [log] = folder.glob("*-tutorial/server.log")
    assert "stopped" in log.read_text()


class Shell:
    """A shell that stays open from block to block. Leaving the context ends it and what it has started."""

    def __init__(self, folder, variables, patience_s=LONG_S):
        self._patience_s = patience_s
        self._end = f"ended-{os.getpid()}"
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.set_blocking(self._process.stdout.fileno(), False)
        self._type("trap 'failed=1' ERR\n")

    def run(self, text):
        """Type a text. Returns what was printed and whether each command succeeded."""
        self._type(f"failed=0\n{text.rstrip()}\nprintf '\\n{self._end} %s\\n' $failed\n")
        printed, _, failed = self._read().rpartition(f"\n{self._end} ")
        return printed, failed.strip() == "0"

    def check(self, block):
        """Run a block of a page. Raises AssertionError when it does not do what the page says."""
        printed, succeeded = self.run(block.text)
        wanted = succeeded if block.printed is None else succeeded != block.printed.startswith("Error: ")
        assert wanted, f"{block.text}{printed}"
        if block.printed is not None:
            assert matches(block.printed, printed), f"{block.text}expected:\n{block.printed}printed:\n{printed}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._process.communicate(b"kill $(jobs -p) 2>/dev/null; wait; exit\n", timeout=LONG_S)
        finally:
            self._process.kill()
            self._process.wait()

    def _type(self, text):
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def _read(self):
        printed, deadline = b"", time.monotonic() + self._patience_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not re.search(rf"\n{self._end} \d\n\Z".encode(), printed):
                assert time.monotonic() < deadline, f"takes more than {self._patience_s} s:\n{printed.decode()}"
                assert self._process.poll() is None, f"the shell has ended:\n{printed.decode()}"
                if selector.select(1):
                    printed += self._process.stdout.read() or b""
        return printed.decode()


def matches(shown, printed):
    """Whether a page shows what was printed."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + r" *\n"
        for line in shown.rstrip().splitlines()
    ]
    return re.fullmatch("".join(lines), printed.rstrip() + "\n") is not None
