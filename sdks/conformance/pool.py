"""Processes of one driver that wait for a scenario: starting one costs some languages a second."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from sdks.conformance.driver_process import DriverProcess


class DriverPool:
    """Hands out processes and takes them back. Callable from any thread."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._lock = threading.Lock()
        self._idle: list[DriverProcess] = []
        self._started = 0

    def take(self, *, fresh: bool = False) -> DriverProcess:
        """A process with no clients. A fresh one has done nothing before."""
        with self._lock:
            if self._idle and not fresh:
                return self._idle.pop()
            self._started += 1
            log = self._folder / f"driver-{self._started}.log"
        return DriverProcess(self._command, log)

    def give_back(self, driver: DriverProcess) -> None:
        """Only one whose clients are closed."""
        with self._lock:
            self._idle.append(driver)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for driver in self._idle:
            driver.kill()
