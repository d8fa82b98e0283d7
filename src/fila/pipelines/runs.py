"""The runs of an analysis that is made as a whole each time: fairness of a journal, and what-if.

    OUT/runs/000001-1f2e3d4c/   what a run has written: tables of Parquet files
    OUT/published               the runs that count, with their folders and pages: a Delta Lake table
    OUT/pages/000001.html       the page of each run, for people; OUT/report.html is that of the last one

Rules of this file:
- A run counts from its commit to `published` on, which comes after all else that it writes. It is one commit wherever
  Delta Lake has one, also on an object store. What is published is never moved or changed. Pages are drawn from it.
- Readers take the folder of a run from `published`: they see a run as a whole or not at all.
- Delta Lake takes each number of a run once. Of two runs with one number the first counts, and the other is told.
- A folder whose number was given to another run can never count. Whoever comes next removes it.
- A folder `runs/000001`, without more to its name, is a run of the layout before. It counts, and is only read.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput, RunTaken
from fila.pipelines.fairness.tables import DeltaTables
from fila.pipelines.files import Files
from fila.pipelines.progress import Say

PUBLISHED = "published"
ReadFiles = dict[str, tuple[int, int]]
"""Files that were read, by path: size and time of change."""
_SCHEMA = "as_of_ms bigint, folder string, manifest string, page string"
_STAGING = ".staging-"
"""What folders under way were called in the layout before, beside `runs`."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run has taken in, and under which rules."""

    run: int
    as_of_ms: int
    rules: dict[str, Any]
    #: By input.
    inputs: dict[str, ReadFiles]
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """What a run is, when its tables are written."""

    rules: dict[str, Any]
    inputs: dict[str, ReadFiles]
    summary: dict[str, Any]
    #: Draws the page.
    page: Callable[[Manifest], str]


@dataclass(frozen=True, slots=True)
class Published:
    """A run that counts."""

    run: int
    folder: str
    #: The page of the last run.
    report: str


class Runs:
    """The runs in a folder."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self._spark, self._files, self._tables = spark, Files(spark), DeltaTables(spark, out)
        self.out = self._tables.out

    def last(self) -> Published | None:
        """The newest run that counts."""
        if self._tables.exists(PUBLISHED):
            row = self._tables.read(PUBLISHED).select("run", "folder").orderBy(F.desc("run")).limit(1).collect()[0]
            return self._published(row.run, row.folder)
        old = [name for name in self._folders() if name.isdecimal()]
        return self._published(int(max(old)), max(old)) if old else None

    def table(self, name: str) -> DataFrame:
        """A table of the newest run. Raises BadInput where there is none."""
        last = self.last()
        if last is None:
            raise BadInput(f"{self.out} has no run")
        return self._spark.read.parquet(f"{last.folder}/{name}")

    def add(self, now_ms: int, write: Callable[[str], Content], say: Say) -> tuple[Published, Content]:
        """Make the next run: `write` puts its tables into a folder. Raises RunTaken."""
        self._tidy()
        before = self.last()
        run = before.run + 1 if before else 1
        name = f"{run:06d}-{secrets.token_hex(4)}"
        ours = self._published(run, name)
        try:
            content = write(ours.folder)
            manifest = Manifest(run, now_ms, content.rules, content.inputs, content.summary)
            say("drawing")
            self._commit(name, manifest, content.page(manifest))
        except BaseException as error:
            if name not in self._names():  # else it counts, though nobody was told
                self._files.remove(ours.folder)
                if isinstance(error, PySparkException) and self._is_taken(run):
                    raise self._taken(run) from error  # whoever was faster has removed the folder
            raise
        self._tidy()
        say("published")
        return ours, content

    def _commit(self, name: str, manifest: Manifest, page: str) -> None:
        row = (manifest.as_of_ms, name, json.dumps(asdict(manifest)), page)
        self._tables.append(PUBLISHED, self._spark.createDataFrame([row], _SCHEMA).coalesce(1), manifest.run)
        if name not in self._names():
            raise self._taken(manifest.run)

    def _tidy(self) -> None:
        """Show the page of the last run, and remove what can no longer count: after a run, and before the next."""
        last = self.last()
        if last is None:
            return
        shown = f"{self.out}/pages/{last.run:06d}.html"
        if self._tables.exists(PUBLISHED) and not self._files.exists(shown):
            page = self._tables.read(PUBLISHED).where(F.col("run") == last.run).select("page").collect()[0].page
            for where in (last.report, shown):
                self._files.write(where, page)
        names = self._names()
        for name in self._folders():
            number, _, token = name.partition("-")
            if token and number.isdecimal() and int(number) <= last.run and name not in names:
                self._files.remove(f"{self.out}/runs/{name}")
        for name in self._files.folders(self.out):
            if name.startswith(_STAGING):
                self._files.remove(f"{self.out}/{name}")

    def _names(self) -> set[str]:
        """The folders of all runs that count."""
        if not self._tables.exists(PUBLISHED):
            return set()
        return {row.folder for row in self._tables.read(PUBLISHED).select("folder").collect()}

    def _folders(self) -> list[str]:
        return self._files.folders(f"{self.out}/runs")

    def _is_taken(self, run: int) -> bool:
        last = self.last()
        return last is not None and last.run >= run

    def _taken(self, run: int) -> RunTaken:
        return RunTaken(f"run {run} appeared meanwhile: another run into {self.out} was faster. Run again.")

    def _published(self, run: int, name: str) -> Published:
        return Published(run, f"{self.out}/runs/{name}", f"{self.out}/report.html")
