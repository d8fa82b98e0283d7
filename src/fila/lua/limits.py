"""What the hooks of one queue may use and return."""

from dataclasses import dataclass, replace
from typing import Self

from fila.config import ConfigError, LimitsConfig, LuaConfig
from fila.core.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class HookLimits:
    """The server's limits, with those that the queue has of its own."""

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
        """What the server says, except for what the queue says itself.

        Raises:
            InvalidArgument: a value of the queue's is out of range.
        """
        lua, limits = lua or LuaConfig(), limits or LimitsConfig()
        try:
            if timeout_ms is not None:
                lua = replace(lua, timeout_ms=timeout_ms)
            if memory_bytes is not None:
                lua = replace(lua, memory_bytes=memory_bytes)
        except ConfigError as error:
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
