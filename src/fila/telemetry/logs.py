"""Structured logs: one JSON object per line in production, pretty on a terminal.

Rules:
- Everything goes through here, libraries that use `logging` included, to one stream in one form. Of libraries only
  warnings and worse: what they say at lower levels may show anything, such as the metadata of calls.
- A log never holds what users send. Values named as payloads or headers are redacted wherever they are nested, bytes
  are shown by length, and objects by type, since their text could show a message. Tracebacks come without local
  variables and without texts that may quote a value (`tracebacks.py`).
"""

import logging
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import TextIO
from uuid import UUID

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from fila.config import LogConfig
from fila.telemetry.tracebacks import traceback_text, write_traceback

OURS = "fila"
REDACTED = "[redacted]"
REDACTED_KEYS = frozenset({"payload", "payloads", "headers", "header"})

# Filled in by logging and structlog themselves, and rendered by them.
_INTERNAL_KEYS = frozenset({"exc_info", "stack_info", "_record", "_from_structlog"})


def configure(config: LogConfig, stream: TextIO | None = None) -> None:
    """Send every log of this process to `stream` (stderr by default) in the form that `config` asks for."""
    stream = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping()[config.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                redact,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(config, stream),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger(OURS).setLevel(level)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace what may have come from a user's message. The last processor before rendering."""
    return {key: value if key in _INTERNAL_KEYS else _shown(key, value) for key, value in event.items()}


def _renderers(config: LogConfig, stream: TextIO) -> list[Processor]:
    terminal = stream.isatty()
    if config.format == "pretty" or (config.format == "auto" and terminal):
        return [structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=write_traceback)]
    return [structlog.processors.ExceptionRenderer(traceback_text), structlog.processors.JSONRenderer()]


def _shown(key: str, value: object) -> object:
    if key.lower() in REDACTED_KEYS:
        return REDACTED
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case Mapping():
            return {str(k): _shown(str(k), v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_shown(key, item) for item in value]
        case BaseException() | UUID() | PurePath() | Enum():
            return str(value)
        case type():
            return value.__name__
        case _:
            return f"<{type(value).__name__}>"
