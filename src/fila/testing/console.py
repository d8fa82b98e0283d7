"""A real `fila console` process, and a browser to open it with: for tests, pictures and benchmarks."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fila.testing.process import ChildProcess, ServerFailed

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_ADDRESS = re.compile(r" at (https?://\S+)")
_POLL_S = 0.02


class ConsoleProcess(ChildProcess):
    """The console of one broker on a free port of loopback. `url` is what a browser opens."""

    def __init__(
        self,
        addr: str,
        workdir: Path | None = None,
        *,
        args: Sequence[str] = (),
        listen: str = "127.0.0.1:0",
        start_timeout: float = 30.0,
    ) -> None:
        super().__init__(workdir, "console")
        self.url = ""
        self._command = [sys.executable, "-m", "fila.cli.main", "console", "--addr", addr, "--listen", listen, *args]
        self._start_timeout = start_timeout

    def start(self) -> None:
        """Start it and wait until it answers. Raises ServerFailed."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        before = len(self.log)
        process = self._launch(self._command, env)
        deadline = time.monotonic() + self._start_timeout
        while (found := _ADDRESS.search(self.log, before)) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"the console did not start\n{self._log_tail()}")
            time.sleep(_POLL_S)
        self.url = found[1].rstrip("/")


class BrowserMissing(RuntimeError):
    """There is no Chromium on this machine. The text says how to get one."""


@contextmanager
def open_browser() -> Iterator["Browser"]:
    """Debian's Chromium without a window, driven by Playwright. Raises BrowserMissing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise BrowserMissing("there is no Chromium: run 'apt-get install chromium' as root")
    from playwright.sync_api import sync_playwright

    args = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=args)
        try:
            yield browser
        finally:
            browser.close()
