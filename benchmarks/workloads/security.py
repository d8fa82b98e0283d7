"""What security costs: the same work in plaintext, with an API key, over TLS, with both, over mutual TLS, in turn."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, Measured, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Ways, Workload
from fila import Client
from fila.testing import ServerProcess

LABELS = {
    "plain": "plaintext",
    "key": "API key",
    "tls": "TLS",
    "key_tls": "API key and TLS",
    "mtls": "mutual TLS",
}
KINDS = tuple(LABELS)
_WITH_KEY = {"key", "key_tls"}
_WITH_TLS = {"tls", "key_tls", "mtls"}
_MOST_KEY_COST_PERCENT = 2

_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench "
    "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
)
"""One that signs itself: everybody's certificate, and the CA that everybody trusts."""


def _security(run: Run) -> Mapping[str, float]:
    # All take turns, and who begins changes, so that a machine that slows down favours none.
    order = KINDS if run.index % 2 else KINDS[::-1]
    with TemporaryDirectory() as folder:
        subprocess.run(_CERTIFICATE.split(), cwd=folder, check=True, capture_output=True)  # as it stands above
        measured = {kind: _lifecycle(run, kind, Path(folder)) for kind in order}
    messages = run.scale.fair_messages
    figures = {
        f"{kind}_{name}": value for kind in KINDS for name, value in measured[kind].per_message(messages).items()
    }
    for kind in KINDS[1:]:
        figures[f"{kind}_time_cost_percent"] = (measured[kind].seconds / measured["plain"].seconds - 1) * 100
        cpu = measured[kind].server_cpu_s / measured["plain"].server_cpu_s
        figures[f"{kind}_cpu_cost_percent"] = (cpu - 1) * 100
    return figures


def _lifecycle(run: Run, kind: str, folder: Path) -> Measured:
    scale = run.scale
    with _environment(_tls_variables(kind, folder)), _server(kind, folder) as server:
        with Client(server.addr) as client:
            client.create_queue(QUEUE, fairness_header=KEY_HEADER)
            token = client.auth.create_key("bench", ["admin"]).token if kind in _WITH_KEY else ""
        run.say(LABELS[kind])
        keys = clients.TENANTS
        with _environment({"FILA_API_KEY": token} if token else {}):
            producer = ClientProcess(
                clients.produce, server.addr, QUEUE, scale.fair_messages, scale.payload_bytes, keys
            )
            consumer = ClientProcess(clients.consume, server.addr, QUEUE, scale.fair_messages, scale.max_in_flight)
            return run_together(server.pid, [producer, consumer])


def _server(kind: str, folder: Path) -> ServerProcess:
    if kind not in _WITH_TLS:
        return ServerProcess(start_timeout=120)
    cert, key = folder / "cert.pem", folder / "key.pem"
    config = f'[tls]\ncert = "{cert}"\nkey = "{key}"\n'
    if kind == "mtls":
        config += f'client_ca = "{cert}"\nclient_auth = "required"\n'
    credentials = grpc.ssl_channel_credentials(cert.read_bytes(), key.read_bytes(), cert.read_bytes())
    return ServerProcess(start_timeout=120, config=config, credentials=credentials)


def _tls_variables(kind: str, folder: Path) -> dict[str, str]:
    if kind not in _WITH_TLS:
        return {}
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    return {"FILA_TLS_CA": cert} | ({"FILA_TLS_CERT": cert, "FILA_TLS_KEY": key} if kind == "mtls" else {})


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Tells the clients of this process, and of those that it starts, how to connect."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def _figures() -> tuple[Figure, ...]:
    figures = [Figure(f"{kind}_messages_per_s", LABELS[kind], "msg/s") for kind in KINDS]
    for kind in KINDS[1:]:
        goal = Goal("<", _MOST_KEY_COST_PERCENT) if kind == "key" else None
        figures.append(Figure(f"{kind}_time_cost_percent", f"more time, {LABELS[kind]}", "%", goal))
        figures.append(Figure(f"{kind}_cpu_cost_percent", f"more server CPU, {LABELS[kind]}", "%"))
    figures += [
        Figure(f"{kind}_{side}_cpu_s_per_100k", f"{side} CPU per 100,000, {LABELS[kind]}", "s")
        for kind in KINDS
        for side in ("server", "client")
    ]
    return tuple(figures)


SECURITY = Workload(
    name="security",
    title="API key, TLS and mutual TLS against plaintext",
    setting=lambda s: (
        f"{s.fair_messages:,} x {s.payload_bytes} B enqueued, delivered and acked at once, with {clients.TENANTS} "
        f"keys, by turns in {', '.join(LABELS.values())}"
    ),
    figures=_figures(),
    sample=_security,
    ways=Ways(
        page="security.md",
        columns=LABELS,
        rows={
            "messages_per_s": "messages per second",
            "server_cpu_s_per_100k": "server CPU per 100,000 messages, s",
            "client_cpu_s_per_100k": "client CPU per 100,000 messages, s",
            "time_cost_percent": "more time than plaintext, %",
            "cpu_cost_percent": "more server CPU than plaintext, %",
        },
    ),
)
