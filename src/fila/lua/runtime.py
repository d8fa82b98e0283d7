"""One script in its own Lua runtime: compiled once, called many times, ended when it exceeds a limit.

Rules:
- A runtime is never shared between queues, so a script cannot affect another one.
- lupa pushes arguments in unprotected mode: if the memory limit were reached there, Lua would abort the process. So
  before each call there is free memory for its arguments, and after it the script is below its limit or given up.
- Only strings, numbers, booleans and nil come back from Lua, for the same reason.
- After a failure that is `exhausted`, the runtime must not be used again.
"""

import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from lupa import lua54

from fila.core.errors import InvalidArgument
from fila.core.policy import (
    DEFAULT_KEY,
    MAX_COST,
    MAX_PRIORITY,
    MAX_THROTTLE_KEYS,
    MAX_WEIGHT,
    Placement,
    Verdict,
)
from fila.lua.limits import HookLimits

FailureKind = Literal["error", "timeout", "memory", "bad_return"]
GetConfig = Callable[[str], str | None]

_FOLDER = Path(__file__).parent
_SANDBOX = (_FOLDER / "sandbox.lua").read_text(encoding="utf-8")
_PATTERNS = (_FOLDER / "patterns.lua").read_text(encoding="utf-8")

#: Memory kept free for the arguments of a call. Larger arguments get memory of their own size for that call.
_RESERVE_BYTES = 128 * 1024
#: Memory of an argument beside its text: Lua's string header, and its slots in a table and on the stack.
_ARGUMENT_BYTES = 256
#: Messages with at most this many headers take the faster entry point.
_FEW_HEADERS = 4
#: CPU time that compiling a script may take. The whole broker waits for it.
COMPILE_MS = 10
#: How many "break" and "goto" a script may contain: Lua's compiler takes quadratic time to resolve those of one block.
MAX_JUMPS = 2000
#: The longest UTF-8 encoding of one character.
_CHARACTER_BYTES = 4


class HookFailed(Exception):
    """A call of a hook failed. The text is for operators."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.kind: FailureKind = kind

    @property
    def exhausted(self) -> bool:
        """Whether the script exceeded a limit. Its runtime must not be used again."""
        return self.kind in {"timeout", "memory"}


class ScriptRuntime:
    """A compiled script, ready to be called."""

    __slots__ = (
        "__weakref__",
        "_allowed",
        "_ceiling",
        "_collect",
        "_enqueue_few",
        "_enqueue_many",
        "_fail",
        "_memory_text",
        "_runtime",
        "_used",
        "on_enqueue",
        "on_failure",
    )

    def __init__(
        self,
        source: str,
        queue: str,
        limits: HookLimits,
        get_config: GetConfig,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        *,
        slow: bool = False,
    ) -> None:
        """Compile and load the script. With `slow`, first calls begin with a check of the time at every instruction.

        Raises:
            InvalidArgument: it does not compile, fails while it loads, or defines no hook.
        """
        try:
            script = source.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument("the script is not valid Unicode text") from error
        if len(script) > limits.max_script_bytes:
            raise InvalidArgument(
                f"the script has {len(script)} bytes, {limits.max_script_bytes} are allowed (lua.max_script_bytes)"
            )
        jumps = script.count(b"break") + script.count(b"goto")
        if jumps > MAX_JUMPS:
            raise InvalidArgument(f"the script has {jumps} jumps (break and goto), {MAX_JUMPS} are allowed")
        self._memory_text = f"the script exceeded its memory limit of {limits.memory_bytes} bytes"
        self._runtime = runtime = lua54.LuaRuntime(
            encoding="utf-8",
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            max_memory=0,
        )
        # The Lua state keeps the functions it is given. A weak reference avoids a cycle: the state is freed with self.
        myself = weakref.ref(self)
        define, self._enqueue_few, self._enqueue_many, self._fail, self._collect = runtime.execute(
            _SANDBOX,
            runtime.table_from(_options(queue, limits, slow) | {"memory_text": self._memory_text}),
            _PATTERNS,
            cpu_ns,
            _reader(get_config),
            lambda: _running(myself).lift_memory_limit(),
            lambda: _running(myself).restore_memory_limit(),
            name="=fila",
            mode="t",
        )
        self._used: Callable[[], int] = runtime.get_memory_used
        self._collect()
        self._ceiling = self._used() + limits.memory_bytes
        self._allow(_RESERVE_BYTES)
        try:
            _, self.on_enqueue, self.on_failure = self._call(define, (script,), len(script))
        except HookFailed as failure:
            raise InvalidArgument(f"the script cannot be used: {failure}") from failure
        if not (self.on_enqueue or self.on_failure):
            raise InvalidArgument("the script cannot be used: it defines neither on_enqueue nor on_failure")

    def enqueue(self, headers: Mapping[str, str], payload_size: int) -> Placement:
        """Call `on_enqueue`.

        Raises:
            HookFailed: the hook raised an error, exceeded a limit or returned something invalid.
        """
        texts = _flat(headers)
        function = self._enqueue_few if len(headers) <= _FEW_HEADERS else self._enqueue_many
        answer = self._call(function, (payload_size, *texts), len("".join(texts)))
        key, weight, cost, priority, delay_ms = answer[:5]
        return Placement(
            DEFAULT_KEY if key is None else key,
            weight,
            tuple(sorted(set(answer[5:]))) if len(answer) > 5 else (),
            cost,
            priority,
            delay_ms,
        )

    def fail(self, headers: Mapping[str, str], message_id: str, attempts: int, error: str) -> Verdict:
        """Call `on_failure`.

        Raises:
            HookFailed: the hook raised an error, exceeded a limit or returned something invalid.
        """
        texts = _flat(headers)
        characters = len(message_id) + len(error) + len("".join(texts))
        _, dead, delay_ms = self._call(self._fail, (message_id, attempts, error, *texts), characters)
        return Verdict(dead, delay_ms)

    def lift_memory_limit(self) -> None:
        """Suspend the memory limit, so that Python can push a string."""
        self._runtime.set_max_memory(0)

    def restore_memory_limit(self) -> None:
        """Enforce the memory limit again."""
        self._runtime.set_max_memory(self._allowed)

    def _allow(self, reserve: int) -> None:
        self._allowed = self._ceiling + reserve
        self.restore_memory_limit()

    def _call(self, function: Any, arguments: tuple[object, ...], characters: int) -> tuple[Any, ...]:
        needed = _CHARACTER_BYTES * characters + _ARGUMENT_BYTES * len(arguments)
        if needed > _RESERVE_BYTES:
            self._allow(needed)
        answer: tuple[Any, ...]
        try:
            answer = function(*arguments)
        except lua54.LuaMemoryError as error:
            raise HookFailed("memory", self._memory_text) from error
        except UnicodeDecodeError:
            answer = (False, "bad_return", "fairness_key and throttle_keys must be UTF-8 text")
        except lua54.LuaError as error:
            # The sandbox catches all errors of a script. Only a limit reached inside the sandbox itself gets here.
            raise HookFailed("timeout", str(error)) from error
        except (UnicodeEncodeError, OverflowError) as error:
            answer = (False, "error", str(error))
        if needed > _RESERVE_BYTES:
            self._allow(_RESERVE_BYTES)
        if self._used() > self._ceiling:
            self._collect()
            if self._used() > self._ceiling:
                raise HookFailed("memory", f"{self._memory_text} with what it keeps between calls")
        if answer[0] is False:
            raise HookFailed(answer[1], answer[2])
        return answer


def _running(runtime: "weakref.ref[ScriptRuntime]") -> ScriptRuntime:
    running = runtime()
    assert running is not None, "only a live runtime calls back"
    return running


def _flat(headers: Mapping[str, str]) -> list[str]:
    texts: list[str] = []
    for header in headers.items():
        texts += header
    return texts


def _options(queue: str, limits: HookLimits, slow: bool) -> dict[str, object]:
    return {
        "queue": queue,
        "limit_ns": limits.timeout_ms * 1_000_000,
        "limit_text": f"the call exceeded its time limit of {limits.timeout_ms} ms",
        "compile_ns": COMPILE_MS * 1_000_000,
        "compile_text": f"compiling it exceeded the time limit of {COMPILE_MS} ms",
        "slow": slow,
        "max_key_bytes": limits.max_key_bytes,
        "max_delay_ms": limits.max_delay_ms,
        "max_throttle_keys": MAX_THROTTLE_KEYS,
        "max_weight": MAX_WEIGHT,
        "max_cost": MAX_COST,
        "max_priority": MAX_PRIORITY,
    }


def _reader(get_config: GetConfig) -> GetConfig:
    def read(key: str) -> str | None:
        # Any other value would reach the script as a Python object.
        value = get_config(key)
        return value if type(value) is str else None

    return read


def _no_attributes(*_: object) -> object:
    raise AttributeError("no access to Python")
