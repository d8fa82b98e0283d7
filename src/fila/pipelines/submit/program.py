"""What the entry points share: checked arguments, and errors as one line and exit code 1."""

import argparse
import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fila.client import FilaError
from fila.pipelines import lineage
from fila.pipelines.errors import BadInput, ChecksFailed, PipelineError
from fila.reconcile.domain.settings import DEFAULTS, Settings
from fila.spark.errors import SparkMissing

if TYPE_CHECKING:
    from fila.pipelines.reconcile.bulk import Outcome

CHECKS_FAILED = 4
"""The exit code of a run that is written, and whose data failed a check."""
_Number = TypeVar("_Number", int, float)


def run(work: Callable[[], None]) -> int:
    """The exit code of a program: 0, 1 after an error that is told in one line, 4 if data failed a check."""
    try:
        work()
    except (PipelineError, SparkMissing, FilaError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return CHECKS_FAILED if isinstance(error, ChecksFailed) else 1
    return 0


def tell(outcome: "Outcome") -> None:
    """Print the summary of a run as JSON. Raises ChecksFailed if its data failed a check."""
    found = {"run": outcome.run, "changed": outcome.changed, "report": outcome.report, **outcome.summary}
    print(json.dumps(found))  # noqa: T201
    if outcome.failure is not None:
        raise ChecksFailed(outcome.failure)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def at_least(least: _Number) -> Callable[[str], _Number]:
    """Reads a number of the type of `least` that is not below it."""
    number_type = type(least)

    def number(text: str) -> _Number:
        value = number_type(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"{text} is not {least} or more")
        return value

    return number


def add_master(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", help="default: that of spark-submit, else all cores of this machine")


def share_bp(text: str) -> int:
    """A share such as `5%`, in basis points. Raises ValueError."""
    number = float(text.strip().removesuffix("%"))
    if not 0 <= number <= 100:
        raise ValueError(f"{text} is not a share from 0% to 100%")
    return round(number * 100)


def hours_ms(text: str) -> int:
    """A time in hours or days, such as `36h` or `2d`, in milliseconds."""
    units = {"h": 3_600_000, "d": 86_400_000}
    if text[-1:] not in units or not text[:-1].isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text} is not a time such as 36h or 2d")
    return int(text[:-1]) * units[text[-1]]


def add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-refused", type=_share, default=10_000, help="share of refused rows (default: 100%%)")


def _share(text: str) -> int:
    try:
        return share_bp(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a share from 0% to 100%") from None


def add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=_file, help="rules, as TOML: sections tiers, growth, trust, retries, alerts")


@contextmanager
def needs_server() -> Iterator[None]:
    """Around imports of what runs the broker's code. Raises PipelineError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise PipelineError(f"this needs the package {error.name}: pip install 'fila[spark,server]'") from error


def add_lineage(parser: argparse.ArgumentParser) -> None:
    text = f"OpenLineage events to this endpoint, or appended to this file (default: ${lineage.URL})"
    default = os.environ.get(lineage.URL, "")
    parser.add_argument("--lineage", metavar="URL|FILE", type=_lineage, default=default, help=text)


def _lineage(text: str) -> lineage.Lineage:
    try:
        return lineage.lineage_to(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def read_rules(path: Path | None) -> Settings:
    """Raises BadInput for rules that are unknown or out of range."""
    if path is None:
        return DEFAULTS
    sections = Settings.__dataclass_fields__
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
        # The file of the reconciliation service has further sections, which do not concern a pipeline.
        return Settings.from_mapping({name: table for name, table in tables.items() if name in sections})
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path
