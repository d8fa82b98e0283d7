"""Metrics of a real server: what Prometheus and a collector get to see."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fila import Client, OutgoingMessage
from fila.metrics.metric import MetricType
from fila.telemetry.catalog import CATALOG
from fila.testing import ServerProcess
from tests.helpers.telemetry import eventually, get, running_prometheus

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "fila.json").read_text())
ALERTS = (DEPLOY / "prometheus" / "alerts.yml").read_text()
SCRIPT = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant, throttle_keys = { "t:" .. msg.headers.tenant } }
end
function on_failure(msg)
  return { action = "retry" }
end
"""


def workload(client):
    """Something of everything: fair delivery, a throttle that holds up, hooks, acks, nacks and what stays."""
    client.create_queue("orders", max_depth=100_000, script=SCRIPT)
    client.set_config("throttle.t:slow", "rate=0.01,burst=3,max_in_flight=5")
    tenants = ["fast"] * 30 + ["slow"] * 10
    client.enqueue_many("orders", [OutgoingMessage(b"x", {"tenant": tenant}) for tenant in tenants])
    with client.consume("orders") as consumer:
        delivered = list(itertools.islice(consumer, 33))
        client.ack_many(delivered[1:])
        delivered[0].nack("not now", delay_ms=60_000)


def expressions():
    """Everything that the dashboard and the alerts ask for."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (one["query"] for one in DASHBOARD["templating"]["list"])
    yield from re.findall(r"expr: (.*)", ALERTS)


def names_in(text):
    return set(re.findall(r"\bfila_[a-z_]+", text))


def test_a_server_that_is_not_watched_opens_no_port_and_does_not_load_opentelemetry(tmp_path):
    with ServerProcess(tmp_path) as server:
        assert "serving metrics" not in server.log
    loaded = "import sys, fila.server.main; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    subprocess.run([sys.executable, "-c", loaded], check=True, timeout=60)


def test_pages_for_probes_answer(watched):
    assert get(watched.http + "/healthz") == (200, "ok\n")
    assert get(watched.http + "/readyz") == (200, "ok\n")
    assert get(watched.http + "/")[0] == 404


def test_a_second_server_on_the_port_does_not_start(watched, tmp_path_factory):
    address = watched.http.removeprefix("http://")
    config = f'[telemetry]\nprometheus_listen = "{address}"\n'
    second = ServerProcess(tmp_path_factory.mktemp("second"), config=config)
    try:
        assert second.launch().wait(30) == 1
        assert f"cannot listen on {address} for metrics" in second.log
    finally:
        second.close()


def test_what_prometheus_scrapes_agrees_with_what_was_done(watched):
    with Client(watched.addr, timeout=30) as client:
        workload(client)
        _, text = get(watched.http + "/metrics")
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    queue = '{queue_id="orders"}'
    expected = {"messages_enqueued_total": 40, "messages_acked_total": 32, "messages_nacked_total": 1}
    assert {name: int(lines[f"fila_{name}{queue}"]) for name in expected} == expected
    assert int(lines[f"fila_messages_leased_total{queue}"]) == 33
    assert int(lines['fila_fairness_throughput_total{queue_id="orders",fairness_key="fast"}']) == 30
    assert int(lines['fila_fairness_throughput_total{queue_id="orders",fairness_key="slow"}']) == 3
    assert int(lines['fila_throttle_decisions_total{throttle_key="t:slow",result="pass"}']) == 3
    assert int(lines['fila_throttle_decisions_total{throttle_key="t:slow",result="hit"}']) >= 1
    assert int(lines['fila_lua_execution_duration_us_count{queue_id="orders",hook="on_enqueue"}']) == 40


def test_promtool_accepts_page_and_rules(watched):
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    with Client(watched.addr, timeout=30) as client:
        workload(client)
    _, text = get(watched.http + "/metrics")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False, timeout=60
    )
    assert checked.stdout == ""
    complaints = [line for line in checked.stderr.splitlines() if "execution_duration_us" not in line]
    assert complaints == []  # but for the unit of that one, which the specification has in its name
    config = DEPLOY / "prometheus" / "prometheus.yml"
    subprocess.run(["promtool", "check", "config", config], check=True, timeout=60)


def test_a_real_prometheus_finds_everything_that_dashboard_and_alerts_ask_for(watched, tmp_path):
    folder = tmp_path / "prometheus"
    shutil.copytree(DEPLOY / "prometheus", folder)
    config = folder / "prometheus.yml"
    text = config.read_text().replace("127.0.0.1:9464", watched.http.removeprefix("http://")).replace("15s", "1s")
    config.write_text(text)
    with Client(watched.addr, timeout=30) as client:
        workload(client)
    with running_prometheus(config, folder) as api:

        def ask(path):
            try:
                return json.loads(get(api + path)[1])["data"]
            except (OSError, ValueError):  # not up yet, or not ready
                return None

        known = eventually(
            lambda: names if "fila_build_info" in (names := set(ask("/label/__name__/values") or ())) else None,
            "a scrape",
        )
        assert set().union(*map(names_in, expressions())) <= known
        told = {metric.prometheus_name for metric in CATALOG if metric.type is not MetricType.HISTOGRAM}
        assert told <= known

        def evaluated():
            groups = (ask("/rules") or {"groups": []})["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None

        rules = eventually(evaluated, "an evaluation of the rules")
        assert len(rules) == ALERTS.count("- alert:")
        assert {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"} == {}


def test_every_metric_is_on_the_dashboard():
    shown = set().union(*map(names_in, expressions()))
    expected = {
        metric.prometheus_name + ("_bucket" if metric.type is MetricType.HISTOGRAM else "") for metric in CATALOG
    }
    assert expected <= shown


def test_a_collector_gets_the_metrics_under_their_names(collector, tmp_path):
    config = f'[telemetry]\notlp_endpoint = "{collector.endpoint}"\nmetrics_interval_ms = 200\nservice_name = "mine"\n'
    with ServerProcess(tmp_path, config=config) as server:
        with Client(server.addr, timeout=30) as client:
            workload(client)
        acked = ("orders",)
        eventually(
            lambda: acked in (told := collector.latest().get("fila.messages.acked", {})) and told[acked].as_int == 32,
            "32 acks at the collector",
        )
        latest = collector.latest()
        assert set(latest) == {metric.name for metric in CATALOG}
        assert latest["fila.messages.leased"]["orders",].as_int == 33
        assert latest["fila.fairness.throughput"]["orders", "fast"].as_int == 30
        assert latest["fila.throttle.decisions"]["t:slow", "pass"].as_int == 3
        assert latest["fila.lua.execution_duration_us"]["orders", "on_enqueue"].count == 40
        resource = collector.requests[-1].resource_metrics[0].resource
        assert "mine" in [attribute.value.string_value for attribute in resource.attributes]


def test_the_last_figures_reach_the_collector_when_the_server_stops(collector, tmp_path):
    config = f'[telemetry]\notlp_endpoint = "{collector.endpoint}"\nmetrics_interval_ms = 3_600_000\n'
    with ServerProcess(tmp_path, config=config) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("q")
            client.enqueue("q", payload=b"x")
        assert server.stop() == 0
    assert collector.latest()["fila.messages.enqueued"]["q",].as_int == 1


def test_a_collector_that_is_away_does_not_keep_the_server_from_working_or_stopping(tmp_path):
    config = '[telemetry]\notlp_endpoint = "http://127.0.0.1:1"\nmetrics_interval_ms = 100\n'
    with ServerProcess(tmp_path, config=config) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("q")
            eventually(lambda: "Failed to export" in server.log or "Transient error" in server.log, "a failed export")
            assert client.enqueue("q", payload=b"x")
        assert server.stop() == 0
