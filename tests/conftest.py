"""Settings for all tests."""

import asyncio
import inspect
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

# Here, because several folders use them: whoever comes first imports them.
pytest.register_assert_rewrite("tests.e2e.load", "tests.e2e.support")

# A shared or busy machine must not fail a property: time is bounded per test by pytest-timeout instead. Explaining a
# failure traces every line, which makes the large state machines run into that bound before they show it.
settings.register_profile(
    "fila",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.load_profile("fila")

TEST_TIMEOUT_S = 120
"""As in pyproject.toml"""
CLEAN_UP_S = 30
"""So much sooner a coroutine that hangs is cancelled, and cleans up"""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    own = pyfuncitem.get_closest_marker("timeout")
    timeout_s = (own.args[0] if own else TEST_TIMEOUT_S) - CLEAN_UP_S
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), timeout_s))
    return True


@pytest.fixture(scope="session", autouse=True)
def signals_reach_children():
    """What the caller ignores, as nohup and background jobs do, is ignored here, but not by the processes of tests.

    An ignored signal stays ignored in every program that a process starts; one that has a handler does not.
    """
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
