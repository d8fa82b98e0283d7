"""What can be wrong with a simulated platform."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from fila.reconcile.domain.settings import BP
from fila.reconcile.simulator.truth import roll
from fila.settings import Layers, Section, flag, whole_number


@dataclass(frozen=True, slots=True)
class Faults(Section):
    """All of it can be set while the platform runs. Shares are of questions, in basis points.

    Whether a question meets a fault depends on the post and on how often it was asked for, so a run can be repeated
    exactly, and asking again may help.
    """

    #: Answers 503 to everybody.
    down: bool = flag(default=False)
    #: Refuses every credential.
    locked: bool = flag(default=False)
    #: Answers this late.
    delay_ms: int = whole_number(0, 0, 1_000_000)
    #: Accepts so many questions a second, and answers 429 to the others; 0 for no limit.
    per_second: int = whole_number(0, 0, 1_000_000)
    #: What it then asks for in `Retry-After`.
    retry_after_seconds: int = whole_number(1, 0, 1_000_000)
    #: Answers 404.
    absent_bp: int = whole_number(0, 0, BP)
    #: Answers without conversions.
    partial_bp: int = whole_number(0, 0, BP)
    #: Answers 500.
    error_bp: int = whole_number(0, 0, BP)
    #: Answers something that is no JSON.
    garbage_bp: int = whole_number(0, 0, BP)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Read what somebody set; all else has its default. Raises SettingsError."""
        layers = Layers({"faults": cls})
        layers.add_tables({"faults": values})
        faults: Self = layers.build("faults")
        return faults

    def strikes(self, fault: str, post: str, asked: int) -> bool:
        """Whether this question meets that fault."""
        share: int = getattr(self, f"{fault}_bp")
        return share > 0 and roll(post, asked, fault, below=BP) < share
