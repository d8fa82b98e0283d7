"""The scripts of queues: compiled when a queue is made or changed, asked for each message."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fila.config import LimitsConfig, LuaConfig
from fila.core.errors import InvalidArgument
from fila.lua.hooks import DryRun, Hooks, OnOpen
from fila.lua.limits import HookLimits
from fila.storage.codec import QueueRecord

ReadBody = Callable[[bytes], tuple[Mapping[str, str], int]]
"""Reads headers and size of the payload out of a message's body, which only the edge of the program can."""


def _opaque(body: bytes) -> tuple[Mapping[str, str], int]:
    return {}, len(body)


@dataclass(frozen=True, slots=True)
class Scripting:
    """What the broker is given to run scripts with."""

    config: LuaConfig = field(default_factory=LuaConfig)
    read_body: ReadBody = _opaque
    on_open: OnOpen | None = None
    """Told when a hook failed so often that it is bypassed."""
    on_broken: Callable[[str, str], None] = lambda _queue, _reason: None
    """Told at the start of a queue whose script can no longer be used, which then goes without."""


class Scripts:
    """Makes hooks of sources."""

    def __init__(self, scripting: Scripting, limits: LimitsConfig, settings: Mapping[str, str]) -> None:
        self._given = scripting
        self._limits = limits
        self._setting = settings.get
        self.read_body = scripting.read_body

    def compile(self, record: QueueRecord) -> Hooks | None:
        """The hooks of a queue; None without a script. Raises InvalidArgument with line and reason."""
        if not record.script:
            return None
        limits = self._limits_of(record)
        return Hooks(record.script, record.name, limits, self._setting, on_open=self._given.on_open)

    def recompile(self, record: QueueRecord) -> Hooks | None:
        """As `compile`, for a script that was accepted before: it must not keep the broker from starting."""
        try:
            return self.compile(record)
        except InvalidArgument as error:
            self._given.on_broken(record.name, str(error))
            return None

    def try_out(self, record: QueueRecord, source: str) -> DryRun:
        """A script that may be asked and decides nothing. Raises InvalidArgument with line and reason."""
        return DryRun(source or record.script, record.name, self._limits_of(record), self._setting)

    def _limits_of(self, record: QueueRecord) -> HookLimits:
        return HookLimits.of(
            self._given.config,
            self._limits,
            timeout_ms=record.script_timeout_ms,
            memory_bytes=record.script_memory_bytes,
        )
