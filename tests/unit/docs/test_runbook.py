"""Every alert has its section in the runbook, a link to it, and an expression of metrics that exist."""

import json
import re
from pathlib import Path

import pytest
import yaml

from fila.metrics.metric import MetricType
from fila.telemetry.catalog import CATALOG

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
[GROUP] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
DASHBOARD = json.loads((DEPLOY / "grafana" / "fila.json").read_text())
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.DOTALL | re.MULTILINE))
QUESTIONS = ["What it means.", "How to see it.", "What to do."]
SUFFIXES = ("_bucket", "_sum", "_count")
KNOWN = {
    metric.prometheus_name + suffix
    for metric in CATALOG
    for suffix in (SUFFIXES if metric.type is MetricType.HISTOGRAM else ("",))
}


def slug(heading):
    """As both GitHub and the site make the anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def anchors(page):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)}


def test_every_alert_has_a_section_and_every_section_an_alert():
    assert list(SECTIONS) == list(RULES)


@pytest.mark.parametrize("alert", RULES)
def test_a_section_says_what_it_means_how_to_see_it_and_what_to_do(alert):
    assert re.findall(r"^\*\*(.*?)\*\*", SECTIONS[alert], re.MULTILINE) == QUESTIONS


@pytest.mark.parametrize("alert", RULES)
def test_the_link_of_an_alert_leads_to_its_section(alert):
    annotations = RULES[alert]["annotations"]
    base, page = annotations["runbook_url"].split("}}/")
    assert base == '{{ or $externalLabels.docs_url "http://127.0.0.1:8000" '
    assert page == f"runbook.html#{slug(alert)}"
    assert annotations["summary"].endswith(".")


@pytest.mark.parametrize("alert", RULES)
def test_an_expression_uses_metrics_that_exist(alert):
    used = set(re.findall(r"\bfila_\w+", RULES[alert]["expr"]))
    assert used <= KNOWN
    assert used or alert == "FilaDown"  # which asks Prometheus itself
    assert RULES[alert]["labels"]["severity"] in {"critical", "warning", "info"}


def test_the_severities_are_told():
    told = set(re.findall(r"^\| (\w+) \|", RUNBOOK.split("## ")[0], re.MULTILINE)) - {"severity"}
    assert told == {rule["labels"]["severity"] for rule in RULES.values()}


@pytest.mark.parametrize("folder", ["prometheus", "docker"])
def test_prometheus_knows_where_the_links_of_alerts_begin(folder):
    config = yaml.safe_load((DEPLOY / folder / "prometheus.yml").read_text())
    assert config["global"]["external_labels"] == {"docs_url": "http://127.0.0.1:8000"}


def rows():
    """The rows of the dashboard with their panels."""
    found = {}
    for panel in DASHBOARD["panels"]:
        if panel["type"] == "row":
            here = found.setdefault(panel["title"], [])
        else:
            here.append(panel)
    return found


def test_the_dashboard_begins_with_figures_that_have_thresholds():
    first = next(iter(rows().values()))
    assert len(first) >= 6
    for panel in first:
        assert panel["type"] == "stat", panel["title"]
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        values = [step["value"] for step in steps[1:]]
        assert values == sorted(values)
    judged = [panel for panel in first if len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1]
    assert len(judged) >= 6  # the others are neither good nor bad


def test_the_dashboard_has_a_row_for_the_process():
    expressions = " ".join(target["expr"] for panel in rows()["Process and disk"] for target in panel["targets"])
    for metric in CATALOG:
        if metric.name.startswith("fila.store.") or metric.name in {"fila.process.memory_bytes", "fila.process.cpu"}:
            assert metric.prometheus_name in expressions


def test_panels_do_not_lie_over_each_other():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_links_of_the_dashboard_lead_somewhere():
    """To pages of the site, with their sections, and to the console."""
    links = [link["url"] for link in DASHBOARD["links"]]
    for panel in DASHBOARD["panels"]:
        links += [link["url"] for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", ())]
    variables = {one["name"]: one["query"] for one in DASHBOARD["templating"]["list"]}
    assert {variables["docs"], variables["console"]} == {"http://127.0.0.1:8000", "http://127.0.0.1:5550"}
    for link in links:
        base, _, path = link.partition("/")
        assert base in {"${docs}", "${console}"}
        if base == "${docs}":
            name, _, anchor = path.partition("#")
            page = ROOT / "docs" / name.replace(".html", ".md")
            assert page.exists(), link
            assert not anchor or anchor in anchors(page), link
        else:
            assert path in {"", "queue?name=${__field.labels.queue_id:percentencode}"}


def test_the_queue_page_of_the_console_is_where_the_dashboard_says():
    from fila.console.pages import queue

    assert "/queue" in {page.path for page in queue.PAGES}
