"""The runtime configuration: what operators set while the broker runs, kept over restarts and read by scripts."""

import unicodedata

from fila.broker.commands import SetConfig
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core.errors import InvalidArgument, LimitExceeded
from fila.storage import codec, keys
from fila.storage.base import Family

MAX_KEY_BYTES = 300
MAX_VALUE_BYTES = 16 << 10
MAX_ENTRIES = 100_000


def plan_setting(state: BrokerState, tick: Tick, command: SetConfig) -> str | None:
    """Set or remove an entry. Returns the value before, if there was one. Raises InvalidArgument or LimitExceeded."""
    key, value, before = command.key, command.value, state.config.get(command.key)
    if value is None:
        tick.batch.delete(Family.STATE, keys.name(key))
        tick.on_commit.append(lambda: state.forget_setting(key))
        return before
    _check(state, key, value)
    tick.batch.put(Family.STATE, keys.name(key), codec.setting(value))
    tick.on_commit.append(lambda: state.apply_setting(key, value, tick.now))
    return before


def _check(state: BrokerState, key: str, value: str) -> None:
    if not key:
        raise InvalidArgument("a config key must not be empty")
    if any(unicodedata.category(char)[0] == "C" for char in key):
        raise InvalidArgument("a config key must not contain control characters")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise LimitExceeded(f"a config key must not exceed {MAX_KEY_BYTES} bytes")
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise LimitExceeded(f"a config value must not exceed {MAX_VALUE_BYTES} bytes")
    if key not in state.config and len(state.config) >= MAX_ENTRIES:
        raise LimitExceeded(f"there are {MAX_ENTRIES} config entries already, which is the limit")
    state.check_setting(key, value)


def find(state: BrokerState, prefix: str) -> list[tuple[str, str]]:
    """Entries whose keys begin with `prefix`, in the order of their keys."""
    return sorted(entry for entry in state.config.items() if entry[0].startswith(prefix))
