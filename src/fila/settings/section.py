"""A section: a frozen dataclass whose fields carry the rule that their values must keep."""

from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar

from fila.settings.errors import SettingsError, shown


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be: in words, as a test, and how it is read from the text of a variable."""

    expected: str
    accepts: Callable[[object], bool]
    #: May raise ValueError.
    from_text: Callable[[str], object] = str


class Section:
    """Checks every field that has a rule, then what must hold between fields."""

    __slots__ = ()

    #: What is raised. A part of Fila may have its own subclass.
    error: ClassVar[type[SettingsError]] = SettingsError

    def __post_init__(self) -> None:
        for key, each in rules(type(self)).items():
            value = getattr(self, key)
            if not each.metadata["rule"].accepts(value):
                raise self.error(refusal(f"{type(self).__name__}.{key}", value, each))
        self.check()

    def check(self) -> None:
        """Check what must hold between fields, with `require`."""

    def require(self, holds: bool, expected: str) -> None:
        """Raises the section's error unless it holds."""
        if not holds:
            raise self.error(f"{type(self).__name__}: expected {expected}")


def rules(section: type[Section]) -> dict[str, Field[Any]]:
    """The fields that have a rule, by name: those that files and variables may set."""
    found = fields(section)  # type: ignore[arg-type] # every section is a dataclass
    return {each.name: each for each in found if "rule" in each.metadata}


def refusal(name: str, value: object, each: Field[Any]) -> str:
    """The message for a value that breaks the rule of its field."""
    said = f"{name} = {shown(value)}" if each.repr else name
    return f"{said}: expected {each.metadata['rule'].expected}"
