"""The folder that a pipeline writes to, run by run.

    OUT/runs/000001/           one run: whatever it wrote, and `manifest.json`
    OUT/report.html            the last run's, for people
    OUT/.staging-.../          a run under way, or what is left of one that was killed; nobody reads it

A run is written beside the others and appears by one rename, so it is there as a whole or not at all. What is published
is never changed.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from fila.spark.errors import BadInput, PipelineError, RunTaken
from fila.spark.files import FileInfo, Files

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run has taken in, those before it included, and under which rules."""

    run: int
    as_of_ms: int
    rules: dict[str, Any]
    #: By input, then by path: size and time of change.
    inputs: dict[str, dict[str, tuple[int, int]]]
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
    def stage(self) -> Iterator[str]:
        """A folder for the run under way, which goes if it is not published."""
        folder = f"{self.out}/.staging-{secrets.token_hex(6)}"
        try:
            yield folder
        finally:
            self._files.remove(folder)

    def publish(self, staged: str, manifest: Manifest) -> str:
        """Make what was staged a run. Raises RunTaken."""
        self._files.write(f"{staged}/manifest.json", manifest.to_json())
        target = self.path(manifest.run)
        if not self._files.rename(staged, target):
            raise RunTaken(f"{target} appeared meanwhile: another run into {self.out} was faster. Run again.")
        return target


def new_files(found: list[FileInfo], known: dict[str, tuple[int, int]]) -> list[FileInfo]:
    """The files that no run has taken in. Raises BadInput for one that has changed since."""
    for file in found:
        if file.path in known and tuple(known[file.path]) != (file.size, file.modified_ms):
            raise BadInput(
                f"{file.path} has changed since it was taken in, so its old rows are part of the results: "
                "give new rows in a new file, or begin anew with another --out"
            )
    return [file for file in found if file.path not in known]
