"""The text that Prometheus reads. A test in tests/integration has Prometheus itself read it."""

from fila.metrics.metric import Distribution, Metric, MetricType
from fila.metrics.prometheus import render
from fila.telemetry.catalog import CATALOG, DEPTH, QUEUES, THROUGHPUT

TOOK = Metric("fila.took_us", MetricType.HISTOGRAM, ("queue_id",), "How long it took", "us")


def test_names_have_the_suffixes_that_prometheus_expects():
    assert THROUGHPUT.prometheus_name == "fila_fairness_throughput_total"
    assert DEPTH.prometheus_name == "fila_queue_depth"
    assert Metric("fila.age", MetricType.GAUGE, (), "", "s").prometheus_name == "fila_age_seconds"


def test_names_are_unique_and_plain():
    names = [metric.prometheus_name for metric in CATALOG]
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalnum() and name.islower() for name in names)


def test_a_metric_has_help_type_and_a_line_for_each_value():
    text = render({DEPTH: [(("orders",), 3), (("mail",), 0)]})
    assert text.decode() == (
        "# HELP fila_queue_depth Messages that wait, including delayed ones.\n"
        "# TYPE fila_queue_depth gauge\n"
        'fila_queue_depth{queue_id="orders"} 3\n'
        'fila_queue_depth{queue_id="mail"} 0\n'
    )


def test_a_metric_without_labels_has_no_braces_and_one_without_values_is_left_out():
    assert render({QUEUES: [((), 2)], DEPTH: []}).decode().splitlines()[-1] == "fila_broker_queues 2"


def test_names_that_users_chose_cannot_break_out_of_their_label():
    text = render({THROUGHPUT: [(("q", 'a"} 1\n\\fila_queue_depth{x="'), 1)]}).decode()
    assert text.splitlines()[2:] == [
        'fila_fairness_throughput_total{queue_id="q",fairness_key="a\\"} 1\\n\\\\fila_queue_depth{x=\\""} 1'
    ]


def test_a_histogram_has_cumulative_buckets_a_sum_and_a_count():
    text = render({TOOK: [(("q",), Distribution((5, 10), (1, 2, 4), 99))]}).decode()
    assert text.splitlines()[2:] == [
        'fila_took_us_bucket{queue_id="q",le="5"} 1',
        'fila_took_us_bucket{queue_id="q",le="10"} 3',
        'fila_took_us_bucket{queue_id="q",le="+Inf"} 7',
        'fila_took_us_sum{queue_id="q"} 99',
        'fila_took_us_count{queue_id="q"} 7',
    ]
