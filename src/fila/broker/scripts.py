"""The scripts of queues: compiled when a queue is made or changed, asked for each message."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from fila.config import LimitsConfig, LuaConfig
from fila.core.errors import InvalidArgument, LimitReached
from fila.lua.budget import HookBudget
from fila.lua.hooks import DryRun, Hooks, OnOpen
from fila.lua.limits import HookLimits
from fila.storage.records import QueueRecord

ReadBody = Callable[[bytes], tuple[Mapping[str, str], int]]
"""Reads headers and size of the payload out of a message's body, which only the edge of the program can."""


RUNTIME_BYTES = 128 << 10
"""What a script takes beside what it may hold: its runtime, and room for the arguments of a call."""
SCRIPT_SETTINGS = {"script", "script_timeout_ms", "script_memory_bytes"}
"""What makes hooks begin anew, with nothing in their memory."""
PART_OF_DRY_RUNS = 3
"""Which part of the time that hooks may take is there for dry runs, besides."""
LIMITS = {"script_timeout_ms": "timeout_ms", "script_memory_bytes": "memory_bytes"}
"""Settings of a queue, and what they must not exceed in the server's section [lua]."""


def _opaque(body: bytes) -> tuple[Mapping[str, str], int]:
    return {}, len(body)


@dataclass(frozen=True, slots=True)
class Scripting:
    """What the broker is given to run scripts with."""

    config: LuaConfig = field(default_factory=LuaConfig)
    read_body: ReadBody = _opaque
    clock_ns: Callable[[], int] = time.perf_counter_ns
    """By which the time of hooks is measured"""
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
        tick_ms, percent = scripting.config.tick_ms, scripting.config.max_time_percent
        self.budget = HookBudget(tick_ms, percent, scripting.clock_ns)
        """Of hooks that decide, and of compiling them"""
        self.dry_run_budget = HookBudget(tick_ms, max(1, percent // PART_OF_DRY_RUNS), scripting.clock_ns)
        """Of hooks that are tried"""
        self.broken: dict[str, str] = {}
        """Queues whose script could not be used when the server started, and why"""
        self.reserved = 0
        """Bytes that the scripts of all queues may hold at most."""

    def compile(self, record: QueueRecord) -> Hooks | None:
        """The hooks of a queue; None without a script. Raises InvalidArgument with line and reason."""
        if not record.script:
            return None
        limits = self._limits_of(record)
        with self.budget.spending():
            return Hooks(
                record.script,
                record.name,
                limits,
                self._setting,
                on_open=self._given.on_open,
                budget=self.budget,
                clock_ns=self._given.clock_ns,
            )

    def check_limits(self, record: QueueRecord, settings: Collection[str]) -> None:
        """Raises InvalidArgument when one of these settings of a queue exceeds what the operator allows."""
        for setting, limit in LIMITS.items():
            most = getattr(self._given.config, limit)
            if setting in settings and getattr(record, setting) > most:
                raise InvalidArgument(f"{setting} must not exceed {most}, which is lua.{limit} of the server")

    def check_memory(self, record: QueueRecord, before: QueueRecord | None = None) -> None:
        """Raises LimitReached when a queue's script would make all of them together too large."""
        more = self.needs(record) - (self.needs(before) if before is not None else 0)
        most = self._given.config.max_total_memory_bytes
        if more > 0 and self.reserved + more > most:
            raise LimitReached(
                f"the scripts of all queues may hold {most} bytes (lua.max_total_memory_bytes), {self.reserved} are "
                f"taken and this one needs {more} more: lower its script_memory_bytes, or remove other scripts"
            )

    def needs(self, record: QueueRecord) -> int:
        """What the script of a queue may take of memory."""
        return self._limits_of(record).memory_bytes + RUNTIME_BYTES if record.script else 0

    def recompile(self, record: QueueRecord) -> Hooks | None:
        """As `compile`, for a script that was accepted before: it must not keep the broker from starting."""
        try:
            return self.compile(record)
        except InvalidArgument as error:
            self._given.on_broken(record.name, str(error))
            self.broken[record.name] = str(error)
            return None

    def try_out(self, record: QueueRecord, source: str) -> DryRun:
        """A script that may be asked and decides nothing. Raises InvalidArgument with line and reason."""
        with self.dry_run_budget.spending():
            return DryRun(
                source or record.script,
                record.name,
                self._limits_of(record),
                self._setting,
                budget=self.dry_run_budget,
                clock_ns=self._given.clock_ns,
            )

    def _limits_of(self, record: QueueRecord) -> HookLimits:
        """The operator's limits go before those of the queue, which may be of a time when they were higher."""
        config = self._given.config
        return HookLimits.of(
            config,
            self._limits,
            timeout_ms=min(record.script_timeout_ms, config.timeout_ms),
            memory_bytes=min(record.script_memory_bytes, config.memory_bytes),
        )
