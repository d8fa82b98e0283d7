"""One script in a Lua runtime of its own: compiled once, called many times, ended when it takes too much.

Rules:
- A runtime is never shared between queues. What a script does to its surroundings stays with it.
- lupa pushes arguments unprotected: if the memory limit were reached there, Lua would abort the process. So before
  each call at least the size of its arguments is free, and after each call the script is below its limit or given up.
- Nothing but strings, numbers, booleans and nil comes back from Lua, for the same reason.
- After a failure that is `exhausted` the engine must not be used again.
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

#: What is free for the arguments of a call. Larger ones are given their own size for that call.
_RESERVE_BYTES = 128 * 1024
#: What an argument takes beside its text: Lua's own header of a string, and its place in a table and on the stack.
_ARGUMENT_BYTES = 256
#: So many headers go through the faster way in.
_FEW_HEADERS = 4
#: How long a script may take to compile, on the processor: everybody waits for it.
COMPILE_MS = 10
#: How many words "break" and "goto" a script may have: Lua's compiler resolves those of a block in one go, and takes
#: quadratic time for it.
MAX_JUMPS = 2000
#: UTF-8 needs no more than this for a character.
_CHARACTER_BYTES = 4


class HookFailed(Exception):
    """A call gave no usable answer. The text is for operators."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.kind: FailureKind = kind

    @property
    def exhausted(self) -> bool:
        """Whether the script reached a limit, after which its engine must not be used again."""
        return self.kind in {"timeout", "memory"}


class Engine:
    """A script, ready to be called."""

    __slots__ = (
        "__weakref__",
        "_allowed",
        "_ceiling",
        "_collect",
        "_enqueue_few",
        "_enqueue_many",
        "_fail",
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
        """Compile and load the script. One that was slow before is watched closely from the start.

        Raises:
            InvalidArgument: it does not compile, fails while it is loaded, or defines no hook.
        """
        try:
            script = source.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument("the script is not text") from error
        if len(script) > limits.max_script_bytes:
            raise InvalidArgument(f"the script has {len(script)} bytes, {limits.max_script_bytes} are allowed")
        if script.count(b"break") + script.count(b"goto") > MAX_JUMPS:
            raise InvalidArgument(f"the script has more than {MAX_JUMPS} jumps (break and goto)")
        self._runtime = runtime = lua54.LuaRuntime(
            encoding="utf-8",
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            max_memory=0,
        )
        # The runtime keeps what it is given. It must not keep itself that way: it is to go when the engine goes.
        myself = weakref.ref(self)
        define, self._enqueue_few, self._enqueue_many, self._fail, self._collect = runtime.execute(
            _SANDBOX,
            runtime.table_from(_options(queue, limits, slow)),
            _PATTERNS,
            cpu_ns,
            _reader(get_config),
            lambda: _running(myself).lift(),
            lambda: _running(myself).lower(),
            name="=fila",
            mode="t",
        )
        self._used: Callable[[], int] = runtime.get_memory_used
        self._collect()
        self._ceiling = self._used() + limits.memory_bytes
        self._limit(_RESERVE_BYTES)
        try:
            _, self.on_enqueue, self.on_failure = self._call(define, (script,), len(script))
        except HookFailed as failure:
            raise InvalidArgument(f"the script cannot be used: {failure}") from failure
        if not (self.on_enqueue or self.on_failure):
            raise InvalidArgument("the script cannot be used: it defines neither on_enqueue nor on_failure")

    def enqueue(self, headers: Mapping[str, str], payload_size: int) -> Placement:
        """Ask `on_enqueue`.

        Raises:
            HookFailed: there is no usable answer.
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
        """Ask `on_failure`.

        Raises:
            HookFailed: there is no usable answer.
        """
        texts = _flat(headers)
        characters = len(message_id) + len(error) + len("".join(texts))
        _, dead, delay_ms = self._call(self._fail, (message_id, attempts, error, *texts), characters)
        return Verdict(dead, delay_ms)

    def lift(self) -> None:
        """Take the limit of memory away, so that Python can push a string."""
        self._runtime.set_max_memory(0)

    def lower(self) -> None:
        """Put it back."""
        self._runtime.set_max_memory(self._allowed)

    def _limit(self, reserve: int) -> None:
        self._allowed = self._ceiling + reserve
        self.lower()

    def _call(self, function: Any, arguments: tuple[object, ...], characters: int) -> tuple[Any, ...]:
        need = _CHARACTER_BYTES * characters + _ARGUMENT_BYTES * len(arguments)
        if need > _RESERVE_BYTES:
            self._limit(need)
        answer: tuple[Any, ...]
        try:
            answer = function(*arguments)
        except lua54.LuaMemoryError as error:
            raise HookFailed("memory", "not enough memory") from error
        except UnicodeDecodeError:
            answer = (False, "bad_return", "a key is not UTF-8 text")
        except lua54.LuaError as error:
            # The sandbox answers for all errors of a script. What ends the sandbox itself is a limit reached just then.
            raise HookFailed("timeout", str(error)) from error
        except (UnicodeEncodeError, OverflowError) as error:
            answer = (False, "error", str(error))
        if need > _RESERVE_BYTES:
            self._limit(_RESERVE_BYTES)
        if self._used() > self._ceiling:
            self._collect()
            if self._used() > self._ceiling:
                raise HookFailed("memory", "the script keeps more memory than it may")
        if answer[0] is False:
            raise HookFailed(answer[1], answer[2])
        return answer


def _running(engine: "weakref.ref[Engine]") -> Engine:
    running = engine()
    assert running is not None, "only a running engine calls back"
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
        "limit_text": f"the time limit of {limits.timeout_ms} ms is over",
        "compile_ns": COMPILE_MS * 1_000_000,
        "compile_text": f"it takes more than {COMPILE_MS} ms to compile",
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
        # Whatever else came back would be a Python object in the hands of a script.
        value = get_config(key)
        return value if type(value) is str else None

    return read


def _no_attributes(*_: object) -> object:
    raise AttributeError("no access to Python")
