"""The runtime configuration in pages: every entry once, in order, whatever the pages are."""

from hypothesis import given
from hypothesis import strategies as st

from fila.broker import settings
from fila.broker.scripts import Scripting
from fila.broker.state import BrokerState
from fila.config import LimitsConfig, LuaConfig

names = st.text("ab.é￿\U0010ffff", min_size=1, max_size=4)


def pages(state, prefix, most):
    """All pages, each with its cursor as a client would give it back."""
    behind, found = "", []
    while True:
        page = settings.find(state, prefix, behind, most)
        found.append(page)
        if not page.more:
            return found
        behind = page.entries[-1][0]


@given(st.lists(st.tuples(names, st.booleans())), names | st.just(""), st.integers(1, 5))
def test_pages_have_every_entry_once_and_in_order(changes, prefix, most):
    state = BrokerState(1, LimitsConfig(), Scripting(LuaConfig()))
    for key, kept in changes:
        if kept:
            state.apply_setting(key, key * 2, 0)
        else:
            state.forget_setting(key)
    assert state.config_keys == sorted(state.config)
    expected = sorted(entry for entry in state.config.items() if entry[0].startswith(prefix))
    found = pages(state, prefix, most)
    assert [entry for page in found for entry in page.entries] == expected
    assert {page.total for page in found} == {len(expected)}
    assert all(len(page.entries) == most for page in found[:-1])


def test_a_page_ends_before_it_grows_too_large():
    state = BrokerState(1, LimitsConfig(), Scripting(LuaConfig()))
    for number in range(200):
        state.apply_setting(f"key {number:03}", "x" * settings.MAX_VALUE_BYTES, 0)
    found = pages(state, "", 1000)
    assert sum(len(page.entries) for page in found) == 200
    assert all(sum(len(key) + len(value) for key, value in page.entries) <= settings.PAGE_BYTES for page in found)
