"""Events of OpenLineage: what stands in them, where they go, and that nobody fails for them."""

import json
import logging
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fila.pipelines.errors import BadInput
from fila.pipelines.lineage import Dataset, Lineage, lineage_to, place


class Endpoint(BaseHTTPRequestHandler):
    """Keeps what it is sent, and answers as it is told to."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        server.seen, server.status = [], 201
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def told(lineage, day=None):
    with lineage.run("reconcile:/lake", day) as told:
        told.inputs.append(Dataset("file", "/in", {}, {"inputStatistics": {"rowCount": 3}}))
        told.outputs.append(Dataset("file", "/lake/gold", {"version": {"datasetVersion": "7"}}))


def test_a_run_is_a_start_and_a_complete_with_what_it_read_and_wrote():
    seen = []
    told(Lineage(lambda event: seen.append(json.loads(event)), "jobs"), (0, 86_400_000))
    start, complete = seen
    assert [each["eventType"] for each in seen] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"] == str(uuid.UUID(start["run"]["runId"]))
    assert (start["job"]["namespace"], start["job"]["name"]) == ("jobs", "reconcile:/lake")
    assert (start["inputs"], start["outputs"]) == ([], [])
    nominal = complete["run"]["facets"]["nominalTime"]
    assert nominal["nominalStartTime"] == "1970-01-01T00:00:00.000Z"
    assert nominal["nominalEndTime"] == "1970-01-02T00:00:00.000Z"
    [read], [written] = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", "/in")
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 3
    assert written["facets"]["version"]["datasetVersion"] == "7"
    for event in seen:
        assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
        assert event["producer"].startswith("urn:fila:")
        assert event["eventTime"].endswith("Z")
    facets = [*complete["run"]["facets"].values(), *complete["job"]["facets"].values(), *written["facets"].values()]
    assert all(each["_schemaURL"].startswith("https://openlineage.io/spec/facets/") for each in facets)
    assert all(each["_producer"] == complete["producer"] for each in facets)


def test_a_run_that_fails_says_why_and_fails_as_it_would():
    seen = []
    lineage = Lineage(lambda event: seen.append(json.loads(event)))
    with pytest.raises(BadInput, match="no such thing"), lineage.run("job"):
        raise BadInput("no such thing")
    assert [each["eventType"] for each in seen] == ["START", "FAIL"]
    error = seen[1]["run"]["facets"]["errorMessage"]
    assert (error["message"], error["programmingLanguage"]) == ("no such thing", "PYTHON")


def test_events_reach_an_endpoint_with_the_key_and_below_the_standard_path(endpoint):
    environ = {"OPENLINEAGE_API_KEY": "secret", "OPENLINEAGE_NAMESPACE": "prod"}
    run = "0197f6a0-0000-7000-8000-000000000001"
    told(lineage_to(endpoint.url, environ | {"OPENLINEAGE_PARENT_ID": f"a/b/dag.task/{run}"}))
    told(lineage_to(f"{endpoint.url}/own/path?x=1", {}))
    assert [path for path, _, _ in endpoint.seen] == ["/api/v1/lineage"] * 2 + ["/own/path?x=1"] * 2
    _, headers, event = endpoint.seen[1]
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer secret", "application/json")
    assert event["job"]["namespace"] == "prod"
    parent = event["run"]["facets"]["parent"]
    assert (parent["run"], parent["job"]) == ({"runId": run}, {"namespace": "a/b", "name": "dag.task"})
    assert "Authorization" not in endpoint.seen[2][1]


def test_events_are_lines_that_are_added_to_a_file(tmp_path):
    file = tmp_path / "events.jsonl"
    for _ in range(2):
        told(lineage_to(str(file), {}))
    kinds = [json.loads(line)["eventType"] for line in file.read_text().splitlines()]
    assert kinds == ["START", "COMPLETE"] * 2


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_endpoint_that_refuses_is_a_warning_and_is_not_followed_elsewhere(endpoint, caplog, status):
    endpoint.status = status
    with caplog.at_level(logging.WARNING):
        told(lineage_to(endpoint.url, {"OPENLINEAGE_API_KEY": "secret"}))
    assert [path for path, _, _ in endpoint.seen] == ["/api/v1/lineage"] * 2
    assert f"answered {status}" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("target", ["http://127.0.0.1:1", "http://a..b"])
def test_an_endpoint_that_is_not_there_is_a_warning(target, caplog):
    with caplog.at_level(logging.WARNING):
        told(lineage_to(target, {}))
    assert caplog.text.count("could not be sent") == 2


@pytest.mark.parametrize(
    "target",
    ["http://", "http://user:key@host", "http://host:port", "http://ho st", "http://h\r\nX: y", "/", "/no/file"],
)
def test_a_target_that_cannot_be_one_is_refused(target):
    with pytest.raises(BadInput, match="lineage: "):
        lineage_to(target, {})


def test_a_key_that_no_header_can_have_is_refused_and_not_told():
    with pytest.raises(BadInput, match="OPENLINEAGE_API_KEY has characters") as refused:
        lineage_to("http://host", {"OPENLINEAGE_API_KEY": "se\ncret"})
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("text", ["x", "a/b", "a/b/not-a-uuid"])
def test_a_parent_that_cannot_be_read_is_left_out(text, caplog):
    assert lineage_to("http://host", {"OPENLINEAGE_PARENT_ID": text}).parent is None
    assert "OPENLINEAGE_PARENT_ID" in caplog.text


def test_the_standard_switch_turns_events_off():
    assert not lineage_to("http://host", {"OPENLINEAGE_DISABLED": "true"}).is_on
    assert not Lineage().is_on


@pytest.mark.parametrize(
    "uri, names",
    [
        ("file:/data/lake/", ("file", "/data/lake")),
        ("file:/data/*.csv", ("file", "/data")),
        ("file:/data/2026-{10,11}/a[0-9]", ("file", "/data")),
        ("file:/*", ("file", "/")),
        ("hdfs://name:8020/lake", ("hdfs://name:8020", "/lake")),
        ("s3a://bucket/lake/gold", ("s3://bucket", "lake/gold")),
        ("gs://bucket", ("gs://bucket", "/")),
        ("abfss://box@store.dfs.core.windows.net/a", ("abfss://box@store.dfs.core.windows.net", "/a")),
    ],
)
def test_files_are_named_as_the_specification_says(uri, names):
    assert place(uri) == names
