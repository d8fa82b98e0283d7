"""Arguments of the programs that need more than a type: held to the same rules as those of `fila pipeline`."""

import argparse
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fila.reconcile.domain.settings import DEFAULTS, Settings
from fila.spark.errors import BadInput

_Number = TypeVar("_Number", int, float)


def at_least(least: _Number) -> Callable[[str], _Number]:
    """Reads a number of this one's type that is not below it."""
    kind = type(least)

    def number(text: str) -> _Number:
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"{text} is not {least} or more")
        return value

    return number


def add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=_file, help="rules, as TOML: sections tiers, growth, trust, retries, alerts")


def read_rules(path: Path | None) -> Settings:
    """Raises BadInput for rules that cannot be."""
    if path is None:
        return DEFAULTS
    sections = Settings.__dataclass_fields__
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
        # The service's file has sections of its own, which are none of ours.
        return Settings.from_mapping({name: table for name, table in tables.items() if name in sections})
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path
