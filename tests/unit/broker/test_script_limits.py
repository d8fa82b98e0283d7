"""What the operator allows to scripts holds for every queue, and for all of them together."""

import pytest

from fila.broker.commands import UpdateQueue
from fila.broker.scripts import RUNTIME_BYTES, Scripting
from fila.config import LuaConfig
from fila.core.errors import InvalidArgument, LimitExceeded
from tests.helpers.broker import Driver

SCRIPT = "function on_enqueue(msg) return {fairness_key = 'k'} end"
KIB = 1024


def made(**config) -> Driver:
    return Driver(scripting=Scripting(LuaConfig(tick_ms=1000, **config)))


def update(driver: Driver, name: str, **changes):
    return driver.ask(lambda reply: UpdateQueue(name, changes, reply))


@pytest.mark.parametrize(
    "setting, value, error",
    [
        ("script_timeout_ms", 21, "script_timeout_ms must not exceed 20, which is lua.timeout_ms of the server"),
        ("script_memory_bytes", 129 * KIB, "script_memory_bytes must not exceed 131072, which is lua.memory_bytes"),
    ],
)
def test_a_queue_cannot_raise_the_limits_of_the_server(setting, value, error):
    driver = made(timeout_ms=20, memory_bytes=128 * KIB)
    within = {"script_timeout_ms": 20, "script_memory_bytes": 128 * KIB}
    with pytest.raises(InvalidArgument, match=error):
        driver.create("q", **(within | {setting: value}))
    driver.create("q", script=SCRIPT, **within)
    with pytest.raises(InvalidArgument, match=error):
        update(driver, "q", **{setting: value})
    update(driver, "q", script_timeout_ms=1)


def test_limits_that_were_lowered_hold_for_queues_that_were_made_before():
    driver = made(timeout_ms=1000)
    driver.create("q", script="function on_enqueue(msg) while true do end end", script_timeout_ms=1000)
    driver.scripting = Scripting(LuaConfig(timeout_ms=5, tick_ms=1000))
    driver.restart()
    driver.send("q")
    assert "the call exceeded its time limit of 5 ms" in driver.queue("q").hooks.enqueue_stats.last_error
    update(driver, "q", quantum=3)  # what does not concern the script can be changed


def test_all_scripts_together_are_bounded():
    room = 3 * (64 * KIB + RUNTIME_BYTES)
    driver = made(memory_bytes=64 * KIB, max_total_memory_bytes=room)
    for number in range(3):
        driver.create(f"q{number}", script=SCRIPT, script_memory_bytes=64 * KIB)
    assert driver.state.scripts.reserved == room
    with pytest.raises(LimitExceeded, match=r"may hold \d+ bytes \(lua.max_total_memory_bytes\)"):
        driver.create("q3", script=SCRIPT, script_memory_bytes=64 * KIB)
    driver.create("q3", script_memory_bytes=64 * KIB)
    with pytest.raises(LimitExceeded, match="max_total_memory_bytes"):
        update(driver, "q3", script=SCRIPT, script_memory_bytes=64 * KIB)
    update(driver, "q0", script=SCRIPT + " ")  # it had its room already
    driver.delete("q1")
    update(driver, "q3", script=SCRIPT, script_memory_bytes=64 * KIB)
    assert driver.state.scripts.reserved == room
    update(driver, "q3", script="")
    driver.restart()
    assert driver.state.scripts.reserved == room * 2 // 3
