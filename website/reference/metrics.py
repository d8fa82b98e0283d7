"""Every metric of the server, from its catalog."""

from collections.abc import Iterator

from fila.telemetry.catalog import CATALOG


def page() -> str:
    """One table."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Metrics"
    yield "\nWhat `/metrics` serves, and what is sent to an OpenTelemetry collector."
    yield "[Observability](../observability.md) is the guide.\n"
    yield "| OpenTelemetry | Prometheus | type | labels | meaning |"
    yield "|---|---|---|---|---|"
    for metric in CATALOG:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | `{metric.prometheus_name}` | {metric.type.value} | {labels} | {metric.help} |"
