"""The folder that the fairness analysis writes to, run by run.

    OUT/runs/000001/           one run: whatever it wrote, and `manifest.json`
    OUT/report.html            the last run's, for people
    OUT/.staging-000001-.../   a run under way, or what is left of one that was killed; nobody reads it

A run is written beside the others and appears by one rename, so it is there as a whole or not at all. What is published
is never changed. A staging folder whose run was published, by another attempt, can never be published itself: the next
run removes it.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from fila.pipelines.errors import PipelineError, RunTaken
from fila.pipelines.files import Files

FORMAT = 1
ReadFiles = dict[str, tuple[int, int]]
"""Files that were read, by path: size and time of change."""
_STAGING = ".staging-"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run has taken in, those before it included, and under which rules."""

    run: int
    as_of_ms: int
    rules: dict[str, Any]
    #: By input.
    inputs: dict[str, ReadFiles]
    summary: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Raises PipelineError for what is no manifest of ours."""
        try:
            values = json.loads(text)
            if values.pop("format") != FORMAT:
                raise PipelineError(f"{where} was written by another version of fila")
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PipelineError(f"{where} is damaged: {error}") from error


class Runs:
    """The runs in a folder."""

    def __init__(self, files: Files, out: str) -> None:
        self._files = files
        self.out = out.rstrip("/") or "/"

    def last(self) -> Manifest | None:
        """What the newest run says of itself."""
        numbers = [int(name) for name in self._files.folders(f"{self.out}/runs") if name.isdecimal()]
        if not numbers:
            return None
        where = f"{self.path(max(numbers))}/manifest.json"
        return Manifest.from_json(self._files.read(where), where)

    def path(self, run: int) -> str:
        return f"{self.out}/runs/{run:06d}"

    def having(self, what: str, last: int) -> list[str]:
        """Where a table is in each of the runs up to this one that has it."""
        paths = [f"{self.path(run)}/{what}" for run in range(1, last + 1)]
        return [path for path in paths if self._files.exists(path)]

    @contextmanager
    def stage(self, run: int) -> Iterator[str]:
        """A folder for the run under way, which goes if it is not published. Raises RunTaken."""
        self._remove_stale(run)
        folder = f"{self.out}/{_STAGING}{run:06d}-{secrets.token_hex(6)}"
        try:
            yield folder
        except Exception as error:
            if self._files.exists(self.path(run)) and not isinstance(error, RunTaken):
                raise self._taken(run) from error  # and whoever came next has removed the folder
            raise
        finally:
            self._files.remove(folder)

    def _remove_stale(self, run: int) -> None:
        """Remove what killed runs left behind."""
        for name in self._files.folders(self.out):
            number = name.removeprefix(_STAGING).partition("-")[0]
            if name.startswith(_STAGING) and number.isdecimal() and int(number) < run:
                self._files.remove(f"{self.out}/{name}")

    def _taken(self, run: int) -> RunTaken:
        return RunTaken(f"{self.path(run)} appeared meanwhile: another run into {self.out} was faster. Run again.")

    def publish(self, staged: str, manifest: Manifest) -> str:
        """Make what was staged a run. Raises RunTaken."""
        self._files.write(f"{staged}/manifest.json", manifest.to_json())
        target = self.path(manifest.run)
        if not self._files.rename(staged, target):
            raise self._taken(manifest.run)
        return target
