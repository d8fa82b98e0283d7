"""A real server that is watched, a real Prometheus that watches it, and a collector in the test's own process."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from fila.testing import ServerProcess
from fila.testing.server import _hold_free_port

PATIENCE_S = 60


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)
    return result


class Collector(metrics_service_pb2_grpc.MetricsServiceServicer, trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what is sent to it."""

    def __init__(self):
        self._server = grpc.server(ThreadPoolExecutor(4))
        self.requests = []
        self.spans = []
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(self, self._server)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(self), self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, request, context):  # noqa: N802
        self.requests.append(request)
        return metrics_service_pb2.ExportMetricsServiceResponse()

    def latest(self):
        """Of each metric the values that came last, by their labels."""
        values = {}
        for resource in self.requests[-1].resource_metrics if self.requests else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                values[metric.name] = {
                    tuple(attribute.value.string_value for attribute in point.attributes): point
                    for point in getattr(metric, metric.WhichOneof("data")).data_points
                }
        return values

    def close(self):
        self._server.stop(None).wait()


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, collector):
        self._collector = collector

    def Export(self, request, context):  # noqa: N802
        for resource in request.resource_spans:
            service = {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"]
            self._collector.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


def get(url):
    """Status and body of a page."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Watched(ServerProcess):
    """A server with a port for Prometheus."""

    @property
    def http(self):
        ports = [json.loads(line)["port"] for line in self.log.splitlines() if '"serving metrics"' in line]
        return f"http://127.0.0.1:{ports[-1]}"


@contextmanager
def running_prometheus(config, folder):
    """A real Prometheus; the address of its API. Without one to run, the test is skipped, in CI it fails."""
    if shutil.which("prometheus") is None:
        text = "needs Prometheus: apt-get install prometheus"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    with _hold_free_port() as holder:
        port = holder.getsockname()[1]
    log = (folder / "prometheus.log").open("w+")
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        process.terminate()
        process.wait(30)
        log.seek(0)
        print(log.read()[-3000:])
        log.close()
