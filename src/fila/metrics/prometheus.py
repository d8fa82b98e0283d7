"""What Prometheus reads: the text exposition format, version 0.0.4."""

from collections.abc import Iterator, Sequence

from fila.metrics.metric import Distribution, Metric, Samples, Value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def render(samples: Samples) -> bytes:
    """The page that is scraped. Metrics without values are left out."""
    return "".join(
        line
        for metric, values in samples.items()
        if values
        for name in (metric.prometheus_name, metric.alias)
        if name
        for line in _lines(name, metric, values)
    ).encode()


def _lines(name: str, metric: Metric, values: Sequence[tuple[tuple[str, ...], Value]]) -> Iterator[str]:
    yield f"# HELP {name} {metric.help}.\n# TYPE {name} {metric.type.value}\n"
    for labels, value in values:
        pairs = [f'{label}="{text.translate(_ESCAPES)}"' for label, text in zip(metric.labels, labels, strict=True)]
        if isinstance(value, Distribution):
            yield from _buckets(name, pairs, value)
        else:
            yield f"{name}{_braced(pairs)} {value!r}\n"


def _buckets(name: str, pairs: list[str], value: Distribution) -> Iterator[str]:
    count = 0
    for bound, more in zip((*map(repr, value.bounds), "+Inf"), value.counts, strict=True):
        count += more
        bucket = [*pairs, f'le="{bound}"']
        yield f"{name}_bucket{_braced(bucket)} {count}\n"
    yield f"{name}_sum{_braced(pairs)} {value.total!r}\n{name}_count{_braced(pairs)} {count}\n"


def _braced(pairs: list[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""
