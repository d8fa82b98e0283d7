"""The benchmark of the SDKs measures nothing that says nothing."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from sdks.conformance.bench import Bench
from sdks.conformance.driver_process import DriverFailed


class Driver:
    """Answers every request with the same."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def ask(self, op, given):
        self.asked.append(op)
        future = Future()
        future.set_result({"ok": self.answer})
        return future


SERVER = SimpleNamespace(addr="localhost:1")


def test_a_debug_build_is_not_measured():
    with pytest.raises(DriverFailed, match="debug build"):
        Bench(SERVER, {"rust": Driver({"debug": True})}, 100)


def test_another_build_is():
    driver = Driver({"debug": False})
    Bench(SERVER, {"rust": driver}, 100)
    assert driver.asked == ["hello", "connect"]
