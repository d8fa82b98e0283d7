"""Logs of the service: one line per event, pretty on a terminal and JSON elsewhere. Never a claim or a credential."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from fila.jobs.context import CorrelationFilter

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_COLOURS = {"WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN and value is not None}


class JsonLines(logging.Formatter):
    """For machines."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Pretty(logging.Formatter):
    """For people."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        colour = _COLOURS.get(record.levelname, "")
        fields = " ".join(f"\033[2m{name}=\033[0m{value}" for name, value in _fields(record).items())
        line = f"\033[2m{at}\033[0m {colour}{record.getMessage()}\033[0m  {fields}"
        if record.exc_info and record.exc_info[0] is not None and record.levelno >= logging.ERROR:
            line += "\n" + self.formatException(record.exc_info)
        return "".join(char if char.isprintable() or char in "\n\033" else "?" for char in line)


def configure(level: str = "info") -> None:
    """Send everything to stderr, in the form that fits it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Pretty() if sys.stderr.isatty() else JsonLines())
    handler.addFilter(CorrelationFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "alembic", "sqlalchemy", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
