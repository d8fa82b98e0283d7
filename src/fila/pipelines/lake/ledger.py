"""Which runs there were, what each came to, and which files were read.

A run begins with the commit to `bronze/received`, whose note is its *intent*: number, moment, source, and the files
that it has read. It counts from its row in `ledger/runs` on. A run that has begun and does not count yet was stopped on
the way, or is under way; whoever comes next finishes it.
"""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.files import FileInfo, Files
from fila.pipelines.lake import contract
from fila.pipelines.lake.contract import BRONZE, FILES, RUNS
from fila.pipelines.lake.lake import Lake

ReadFiles = dict[str, tuple[int, int]]
"""Files that were read, by path: size and time of change."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A run that has begun."""

    run: int
    as_of_ms: int
    #: `bulk`, `import`, or a stream by the id of its query.
    source: str
    batch: int | None = None
    #: By input.
    files: dict[str, ReadFiles] = field(default_factory=dict)
    #: Metrics files that were left out, with the reason.
    quarantined: dict[str, str] = field(default_factory=dict)
    #: Tells the intents of two drivers apart that took one number.
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Run:
    """A run that counts."""

    run: int
    contract: int
    as_of_ms: int
    finished_at_ms: int
    source: str
    rules: dict[str, Any]
    #: The version of each table.
    versions: dict[str, int]
    #: The last batch of each stream.
    batches: dict[str, int]
    summary: dict[str, Any]


def stream_source(files: Files, out: str) -> str:
    """Who the stream of a folder is: Spark names each checkpoint, and counts batches anew for a new one."""
    return f"spark-{json.loads(files.read(f'{out}/checkpoint/metadata'))['id']}"


_JSON = ("rules", "versions", "batches", "summary")


class Ledger:
    """The runs of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def last(self) -> Run | None:
        """The newest run that counts. Raises PipelineError for one of a newer program."""
        for note in self._lake.notes(RUNS):
            return Run(**json.loads(note))
        return self._found(self._lake.read(RUNS).orderBy(F.desc("run")).limit(1)) if self._lake.exists(RUNS) else None

    def at(self, moment_ms: int) -> Run:
        """The last run as of this moment or before. Raises BadInput."""
        runs = self._lake.read(RUNS).where(F.col("as_of_ms") <= moment_ms)
        found = self._found(runs.orderBy(F.desc("run")).limit(1))
        if found is None:
            raise BadInput(f"{self._lake.out} has no run at that time or before it")
        return found

    def of_batch(self, source: str, batch: int) -> Run | None:
        """The run of a batch of a stream."""
        runs = self._lake.read(RUNS).where(F.col("source") == source)
        return self._found(runs.where(F.get_json_object("batches", f"$['{source}']") == str(batch)).limit(1))

    def begun(self, last: Run | None) -> Intent | None:
        """The run that has begun and does not count."""
        number = last.run if last else 0
        for note in self._lake.notes(BRONZE):
            intent = Intent.from_json(note)
            return intent if intent.run > number else None
        return None

    def begin(self, intent: Intent, received: DataFrame) -> bool:
        """Commit what was received. False if another driver took the number."""
        self._lake.append(BRONZE, received, intent.run, intent.to_json())
        taken = next(self._lake.notes(BRONZE), None)
        return taken is not None and Intent.from_json(taken).token == intent.token

    def read_files(self, name: str, found: Iterable[FileInfo]) -> ReadFiles:
        """Those of these files that were read for an input, as they were then."""
        paths = [file.path for file in found]
        if not paths or not self._lake.exists(FILES):
            return {}
        known = self._lake.read(FILES).where(F.col("input") == name).where(F.col("path") >= min(paths))
        rows = known.where(F.col("path") <= max(paths)).select("path", "size", "modified_ms").collect()
        return {row.path: (row.size, row.modified_ms) for row in rows}

    def keep_files(self, intent: Intent) -> None:
        rows = [
            (name, path, size, modified, intent.run)
            for name, files in intent.files.items()
            for path, (size, modified) in files.items()
        ]
        if rows:
            frame = self._lake.spark.createDataFrame(rows, contract.TABLES[FILES].schema)
            self._lake.append(FILES, frame.coalesce(1), intent.run)

    def finish(
        self, intent: Intent, before: Run | None, rules: Mapping[str, Any], summary: Mapping[str, Any], now_ms: int
    ) -> Run:
        """Make the run count. Returns what counts now, which another driver may have written."""
        batches = dict(before.batches) if before else {}
        if intent.batch is not None:
            batches[intent.source] = intent.batch
        run = Run(
            intent.run,
            contract.VERSION,
            intent.as_of_ms,
            now_ms,
            intent.source,
            dict(rules),
            self._lake.versions(),
            batches,
            dict(summary),
        )
        self._write(run)
        return run

    def _write(self, run: Run) -> None:
        values = {name: json.dumps(value) if name in _JSON else value for name, value in asdict(run).items()}
        schema = contract.TABLES[RUNS].schema
        frame = self._lake.spark.createDataFrame([tuple(values[name] for name in schema.names)], schema)
        self._lake.append(RUNS, frame.coalesce(1), run.run, json.dumps(asdict(run)))

    def refresh(self) -> None:
        """Let the last run name the versions of now, which hold the same rows in fewer files.

        Only while no run is under way: its rows would be seen.
        """
        last = self.last()
        if last is not None and self.begun(last) is None:
            now = replace(last, versions=self._lake.versions())
            self._lake.note(RUNS, json.dumps(asdict(now)))

    def upgrade(self, last: Run) -> None:
        """Bring tables of an older contract up to this one. Raises PipelineError for a newer one."""
        if last.contract > contract.VERSION:
            raise PipelineError(
                f"{self._lake.out} has tables of version {last.contract}, and this program writes version "
                f"{contract.VERSION}: use a newer fila"
            )
        for table in contract.TABLES.values() if last.contract < contract.VERSION else ():
            self._lake.add_columns(table.name, [(each.name, each.type) for each in table.added_since(last.contract)])

    @staticmethod
    def _found(rows: DataFrame) -> Run | None:
        found = rows.collect()
        if not found:
            return None
        values = found[0].asDict()
        return Run(**{name: json.loads(value) if name in _JSON else value for name, value in values.items()})
