"""The runtime configuration: what operators set while the broker runs, kept over restarts and read by scripts."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fila.broker.commands import SetConfig
from fila.broker.state import BrokerState
from fila.broker.tick import Effect, Tick
from fila.core.errors import InvalidArgument, LimitExceeded, LimitReached
from fila.storage import codec, keys
from fila.storage.base import Family

MAX_KEY_BYTES = 300
MAX_VALUE_BYTES = 16 << 10
MAX_ENTRIES = 100_000
PAGE_BYTES = 1 << 20
"""What a page weighs, unless a single entry weighs more; in characters"""


@dataclass(slots=True)
class Setting(Effect):
    """An entry that is set, or removed."""

    key: str
    value: str | None

    def commit(self, tick: Tick) -> None:
        if self.value is None:
            tick.state.forget_setting(self.key)
        else:
            tick.state.apply_setting(self.key, self.value, tick.now)
        tick.state.on_setting(self.key, self.value)


def plan_setting(tick: Tick, command: SetConfig) -> str | None:
    """Set or remove an entry. Returns the value before, if there was one. Raises InvalidArgument or LimitExceeded."""
    key, value = command.key, command.value
    if value is None:
        _check_key(key)
        tick.batch.delete(Family.STATE, keys.name(key))
    else:
        _check(tick.state, key, value)
        tick.batch.put(Family.STATE, keys.name(key), codec.setting(value))
    tick.add(Setting(key, value))
    return tick.state.config.get(key)


def _check(state: BrokerState, key: str, value: str) -> None:
    _check_key(key)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise LimitExceeded(f"a config key must not exceed {MAX_KEY_BYTES} bytes")
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise LimitExceeded(f"a config value must not exceed {MAX_VALUE_BYTES} bytes")
    if key not in state.config and len(state.config) >= MAX_ENTRIES:
        raise LimitReached(f"there are {MAX_ENTRIES} config entries already, which is the limit")
    state.check_setting(key, value)


def _check_key(key: str) -> None:
    """Names with control characters belong to what the broker keeps beside the configuration, such as keys."""
    if not key:
        raise InvalidArgument("a config key must not be empty")
    if any(unicodedata.category(char)[0] == "C" for char in key):
        raise InvalidArgument("a config key must not contain control characters")


class ConfigPage(NamedTuple):
    """Some of the entries whose keys begin alike."""

    entries: list[tuple[str, str]]
    total: int
    """How many there are on all pages"""
    more: bool
    """Whether there are others behind these"""


def find(
    state: BrokerState, prefix: str, behind: str, most: int, visible: Callable[[str], bool] | None = None
) -> ConfigPage:
    """Entries whose keys begin with `prefix` and come behind a key, in the order of their keys: at most so many, and
    about `PAGE_BYTES` of them. Only those that are visible.
    """
    names, length = state.config_keys, len(prefix)
    if visible is not None:
        names = list(filter(visible, names))
    first = bisect_left(names, prefix)
    end = bisect_right(names, prefix, lo=first, key=lambda key: key[:length])
    start = max(first, bisect_right(names, behind)) if behind else first
    entries: list[tuple[str, str]] = []
    size = 0
    for key in names[start : min(end, start + most)]:
        value = state.config[key]
        size += len(key) + len(value)
        if entries and size > PAGE_BYTES:
            break
        entries.append((key, value))
    return ConfigPage(entries, end - first, start + len(entries) < end)
