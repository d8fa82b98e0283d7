"""OpenLineage events: which data a run has read, which it has written, and how it ended.

A run is a START and a COMPLETE or FAIL, by the specification 2-0-2, as a line of a file or a POST to an endpoint. The
JSON is made here: the official client needs two libraries for HTTP, and three more, for one request. As it does, this
reads `OPENLINEAGE_API_KEY`, `OPENLINEAGE_NAMESPACE`, `OPENLINEAGE_PARENT_ID` and `OPENLINEAGE_DISABLED`.

An event that cannot be sent is a warning: what a pipeline writes does not depend on who hears of it. Of a run whose
driver is killed there is a START alone.
"""

import http.client
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fila.pipelines.errors import BadInput

Send = Callable[[bytes], None]
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "dataQualityAssertions": ("1-1-0", "DataQualityAssertionsDatasetFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "inputStatistics": ("1-0-0", "InputStatisticsInputDatasetFacet"),
    "jobType": ("2-0-4", "JobTypeJobFacet"),
    "nominalTime": ("1-0-1", "NominalTimeRunFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
    "parent": ("1-2-0", "ParentRunFacet"),
    "schema": ("1-2-0", "SchemaDatasetFacet"),
    "storage": ("1-0-1", "StorageDatasetFacet"),
    "version": ("1-0-1", "DatasetVersionDatasetFacet"),
}
"""The version and the name of each facet that is sent."""
_PATH = "/api/v1/lineage"
"""Where the API of OpenLineage is, by its specification."""
_JOB = {"processingType": "BATCH", "integration": "SPARK", "jobType": "JOB"}
_PATIENCE_S = 10
_PATTERN = re.compile(r"[*?\[{]")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that was read or written, by the names of the specification."""

    namespace: str
    name: str
    #: Of the data, and of this reading or writing of it: by name of the facet.
    facets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    this_time: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Told:
    """What a run has read and written so far."""

    inputs: list[Dataset] = field(default_factory=list)
    outputs: list[Dataset] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where events go, and the names that stand in them."""

    send: Send | None = None
    namespace: str = "fila"
    #: The run that started this one: namespace, job, id of the run.
    parent: tuple[str, str, str] | None = None

    @property
    def is_on(self) -> bool:
        return self.send is not None

    @contextmanager
    def run(self, job: str, day: tuple[int, int] | None = None) -> Iterator[Told]:
        """Tells of a run: that it began, and how it ended with what the caller says that it read and wrote.

        `day` is the time that the run is for, in ms. A batch of a stream is a run.
        """
        told, run = Told(), str(uuid.uuid4())
        facets: dict[str, Any] = {}
        if day is not None:
            facets["nominalTime"] = {"nominalStartTime": _time(day[0]), "nominalEndTime": _time(day[1])}
        if self.parent is not None:
            namespace, name, parent = self.parent
            facets["parent"] = {"run": {"runId": parent}, "job": {"namespace": namespace, "name": name}}

        def tell(kind: str, more: Mapping[str, Any]) -> None:
            if self.send is None:
                return
            event = {
                "eventType": kind,
                "eventTime": _time(time.time_ns() // 1_000_000),
                "run": {"runId": run, "facets": _facets({**facets, **more})},
                "job": {
                    "namespace": self.namespace,
                    "name": job,
                    "facets": _facets({"jobType": _JOB}),
                },
                "inputs": [_dataset(each, "inputFacets") for each in told.inputs],
                "outputs": [_dataset(each, "outputFacets") for each in told.outputs],
                "producer": _producer(),
                "schemaURL": _EVENT,
            }
            try:
                self.send(json.dumps(event).encode())
            except (OSError, ValueError, http.client.HTTPException) as error:
                _log.warning("lineage: the %s event of %s could not be sent: %s", kind, job, error)

        tell("START", {})
        try:
            yield told
        except BaseException as error:
            message = str(error).strip() or type(error).__name__
            tell("FAIL", {"errorMessage": {"message": message[:4_000], "programmingLanguage": "PYTHON"}})
            raise
        tell("COMPLETE", {})


NO_LINEAGE = Lineage()
URL = "OPENLINEAGE_URL"
"""The variable that says where events go, unless an option does."""


def lineage_to(target: str, environ: Mapping[str, str] = os.environ) -> Lineage:
    """Events to an http(s) URL, or to a file. Raises BadInput."""
    if not target or environ.get("OPENLINEAGE_DISABLED", "").lower() == "true":
        return NO_LINEAGE
    is_url = target.lower().startswith(("http:", "https:"))
    send = _endpoint(target, environ.get("OPENLINEAGE_API_KEY")) if is_url else _file(target)
    return Lineage(send, environ.get("OPENLINEAGE_NAMESPACE") or "fila", _parent(environ.get("OPENLINEAGE_PARENT_ID")))


def place(uri: str) -> tuple[str, str]:
    """Namespace and name of data in files, from a path with a scheme. A pattern stands for the folder it begins in."""
    match = _PATTERN.search(uri)
    if match is not None:
        uri = uri[: match.start()].rpartition("/")[0] or "/"
    parts = urlsplit(uri)
    if parts.scheme in {"", "file"}:
        return "file", parts.path.rstrip("/") or "/"
    if parts.scheme in {"s3", "s3a", "s3n", "gs"}:
        scheme = "gs" if parts.scheme == "gs" else "s3"
        return f"{scheme}://{parts.netloc}", parts.path.strip("/") or "/"
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/") or "/"


def _endpoint(url: str, key: str | None) -> Send:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadInput(f"lineage: {url} is no URL: {error}") from error
    if not host or parts.username is not None or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput(f"lineage: {url} is not http(s)://HOST[:PORT][/PATH]; a key goes into OPENLINEAGE_API_KEY")
    path = (parts.path if parts.path.strip("/") else _PATH) + (f"?{parts.query}" if parts.query else "")
    headers = {"Content-Type": "application/json", "User-Agent": f"fila/{version('fila')}"}
    if key:
        if not (key.isascii() and key.isprintable()):
            raise BadInput("lineage: OPENLINEAGE_API_KEY has characters that cannot be sent")
        headers["Authorization"] = f"Bearer {key}"
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection

    def send(event: bytes) -> None:
        connection = kind(host, port, timeout=_PATIENCE_S)
        try:
            connection.request("POST", path, event, headers)
            status = connection.getresponse().status
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise OSError(f"{host} answered {status}")

    return send


def _file(path: str) -> Send:
    where = Path(path)
    if where.is_dir() or not where.absolute().parent.is_dir():
        raise BadInput(
            f"lineage: {path} cannot be a file of events: give an http(s) URL, or a file in a folder there is"
        )

    def send(event: bytes) -> None:
        with where.open("ab") as file:
            file.write(event + b"\n")  # one write, so that events of several runs do not mix

    return send


def _parent(text: str | None) -> tuple[str, str, str] | None:
    """`NAMESPACE/JOB/RUN`, as Airflow writes it; a namespace may have slashes."""
    parts = (text or "").rsplit("/", 2)
    try:
        return (parts[0], parts[1], str(uuid.UUID(parts[2]))) if text else None
    except (IndexError, ValueError):
        _log.warning("lineage: OPENLINEAGE_PARENT_ID is not NAMESPACE/JOB/RUN, with a UUID, and is ignored")
        return None


def _dataset(told: Dataset, name: str) -> dict[str, Any]:
    return {
        "namespace": told.namespace,
        "name": told.name,
        "facets": _facets(told.facets),
        name: _facets(told.this_time),
    }


def _facets(facets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    made = {}
    for name, values in facets.items():
        number, kind = _FACETS[name]
        schema = f"{_SPEC}/facets/{number}/{kind}.json#/$defs/{kind}"
        made[name] = {"_producer": _producer(), "_schemaURL": schema, **values}
    return made


def _producer() -> str:
    return f"urn:fila:{version('fila')}"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
