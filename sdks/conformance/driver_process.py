"""A driver as a child process: requests go out as JSON lines, answers are matched by their number."""

import itertools
import json
import os
import signal
import subprocess
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

_TAIL = 2000
_END_S = 10


class DriverFailed(Exception):
    """The driver ended, or said something that is not an answer."""


class DriverProcess:
    """One run of a driver. Not more than its protocol is known here: see DRIVER.md."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        self._numbers = itertools.count(1)
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._ended = False
        env = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603  # a driver of this repository
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, op: str, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Send a request. The future is its answer, a table with `ok` or `error`; it raises DriverFailed."""
        answer: Future[dict[str, Any]] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._ended:
                answer.set_exception(self._failure("the driver has ended"))
                return answer
            self._pending[number] = answer
        line = json.dumps({"id": number, "op": op} | given, ensure_ascii=False) + "\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:
            self._end("the driver took no request")
        return answer

    def kill(self) -> None:
        """Kill -9, with everything that it has started."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def close(self) -> bool:
        """End the driver as its protocol says. Returns whether it ended by itself."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._reader.join()
        return True

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if not self._take(line):
                    break
        self._end("the driver ended before it answered")

    def _take(self, line: bytes) -> bool:
        try:
            answer = json.loads(line)
            number = answer["id"]
            if ("ok" in answer) == ("error" in answer):
                raise ValueError("neither ok nor error, or both")
            with self._lock:
                future = self._pending.pop(number)
        except (ValueError, KeyError, TypeError) as error:
            self._end(f"not an answer ({error!r}): {line[:200]!r}")
            return False
        future.set_result(answer)
        return True

    def _end(self, reason: str) -> None:
        with self._lock:
            self._ended = True
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(self._failure(reason))

    def _failure(self, reason: str) -> DriverFailed:
        tail = self._log.read_text(errors="replace")[-_TAIL:].strip() if self._log.exists() else ""
        return DriverFailed(reason + (f"; it wrote:\n{tail}" if tail else ""))
