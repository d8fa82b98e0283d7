"""What can be wrong with a simulated platform."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from fila.reconcile.domain.settings import BP
from fila.reconcile.simulator.truth import roll


@dataclass(frozen=True, slots=True)
class Faults:
    """All of it can be set while the platform runs. Shares are of questions, in basis points.

    Whether a question meets a fault depends on the post and on how often it was asked for, so a run can be repeated
    exactly, and asking again may help.
    """

    #: Answers 503 to everybody.
    down: bool = False
    #: Refuses every credential.
    locked: bool = False
    #: Answers this late.
    delay_ms: int = 0
    #: Accepts so many questions a second, and answers 429 to the others; 0 for no limit.
    per_second: int = 0
    #: What it then asks for in `Retry-After`.
    retry_after_seconds: int = 1
    #: Answers 404.
    absent_bp: int = 0
    #: Answers without conversions.
    partial_bp: int = 0
    #: Answers 500.
    error_bp: int = 0
    #: Answers something that is no JSON.
    garbage_bp: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type is bool:
                if type(value) is not bool:
                    raise ValueError(f"{each.name}: expected true or false")
            else:
                high = BP if each.name.endswith("_bp") else 1_000_000
                if type(value) is not int or not 0 <= value <= high:
                    raise ValueError(f"{each.name}: expected a whole number from 0 to {high}")

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Read what somebody set; the rest is as it should be. Raises ValueError."""
        known = [each.name for each in fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"unknown fault {name!r}: expected one of {', '.join(known)}")
        return cls(**values)  # type: ignore[arg-type] # checked as it is made

    def strikes(self, fault: str, post: str, asked: int) -> bool:
        """Whether this question meets that fault."""
        share: int = getattr(self, f"{fault}_bp")
        return share > 0 and roll(post, asked, fault, below=BP) < share
