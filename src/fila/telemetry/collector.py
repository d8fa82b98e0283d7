"""A gRPC connection to an OTLP collector, set up by OpenTelemetry's own variables.

`OTEL_EXPORTER_OTLP_TRACES_NAME` is used if it is set, else `OTEL_EXPORTER_OTLP_NAME`:

| NAME | what it sets |
|---|---|
| `HEADERS` | metadata of each call: `key=value,key=value` |
| `CERTIFICATE`, `CLIENT_KEY`, `CLIENT_CERTIFICATE` | files for TLS |
| `INSECURE` | `true`: no TLS. An `https://` endpoint has TLS in any case, an `http://` one by default none |
| `COMPRESSION` | `gzip` |
"""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from opentelemetry.util.re import parse_env_headers

_RETRY_POLICY = {
    "maxAttempts": 5,
    "initialBackoff": "1s",
    "maxBackoff": "5s",
    "backoffMultiplier": 2,
    # Those that the OTLP specification calls retryable.
    "retryableStatusCodes": [
        "CANCELLED",
        "DEADLINE_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNAVAILABLE",
        "DATA_LOSS",
    ],
}
_RETRY_BUFFER_BYTES = 64 << 20
"""A request that is larger is not sent again."""
_OPTIONS = (
    ("grpc.service_config", json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": _RETRY_POLICY}]})),
    ("grpc.retry_buffer_size", _RETRY_BUFFER_BYTES),
    ("grpc.per_rpc_retry_buffer_size", _RETRY_BUFFER_BYTES),
)


def open_channel(endpoint: str, environ: Mapping[str, str]) -> grpc.Channel:
    """A channel to the collector. Raises OSError for a file of TLS that cannot be read."""
    url = urlsplit(endpoint)
    compression = grpc.Compression.Gzip if _variable(environ, "COMPRESSION") == "gzip" else None
    if url.scheme == "http" and _variable(environ, "INSECURE") != "false":
        return grpc.insecure_channel(url.netloc, options=_OPTIONS, compression=compression)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_file(environ, "CERTIFICATE"),
        private_key=_file(environ, "CLIENT_KEY"),
        certificate_chain=_file(environ, "CLIENT_CERTIFICATE"),
    )
    return grpc.secure_channel(url.netloc, credentials, options=_OPTIONS, compression=compression)


def read_metadata(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What each call carries."""
    return tuple(parse_env_headers(_variable(environ, "HEADERS", lower=False), liberal=True).items())


def _file(environ: Mapping[str, str], name: str) -> bytes | None:
    path = _variable(environ, name, lower=False)
    return Path(path).read_bytes() if path else None


def _variable(environ: Mapping[str, str], name: str, *, lower: bool = True) -> str:
    text = environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")
    return text.strip().lower() if lower else text.strip()
