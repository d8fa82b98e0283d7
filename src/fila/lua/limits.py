"""Limits of the hooks of one queue: what they may use and what they may return."""

from dataclasses import dataclass, replace
from typing import Self

from fila.config import LimitsConfig, LuaConfig
from fila.core.errors import InvalidArgument
from fila.settings import SettingsError


@dataclass(frozen=True, slots=True)
class HookLimits:
    """The limits of the server, overridden by those that the queue sets for itself."""

    timeout_ms: int
    memory_bytes: int
    breaker_failures: int
    breaker_cooldown_ms: int
    max_script_bytes: int
    max_key_bytes: int
    max_delay_ms: int

    @classmethod
    def of(
        cls,
        lua: LuaConfig | None = None,
        limits: LimitsConfig | None = None,
        *,
        timeout_ms: int | None = None,
        memory_bytes: int | None = None,
    ) -> Self:
        """Combine the limits of the server with those of one queue.

        Raises:
            InvalidArgument: a limit of the queue is out of range.
        """
        lua, limits = lua or LuaConfig(), limits or LimitsConfig()
        try:
            if timeout_ms is not None:
                lua = replace(lua, timeout_ms=timeout_ms)
            if memory_bytes is not None:
                lua = replace(lua, memory_bytes=memory_bytes)
        except SettingsError as error:
            raise InvalidArgument(str(error).removeprefix("LuaConfig.")) from error
        return cls(
            timeout_ms=lua.timeout_ms,
            memory_bytes=lua.memory_bytes,
            breaker_failures=lua.breaker_failures,
            breaker_cooldown_ms=lua.breaker_cooldown_ms,
            max_script_bytes=lua.max_script_bytes,
            max_key_bytes=limits.max_key_bytes,
            max_delay_ms=limits.max_delay_ms,
        )
