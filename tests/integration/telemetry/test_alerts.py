"""Each alert fires when it should and not before: promtool runs the rules over series that we make up."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ALERTS = Path(__file__).parents[3] / "deploy" / "prometheus" / "alerts.yml"
NAMES = [rule["alert"] for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]]
QUEUE = 'queue_id="q", instance="s"'
HOOK = f'{QUEUE}, hook="on_enqueue"'
KEY = f'{QUEUE}, fairness_key="acme"'
THROTTLE = 'throttle_key="t", instance="s"'

#: What is told every minute in an hour and a half: series with values that fire the alert, and with ones that do not.
CASES = {
    "FilaDown": ({'up{job="fila"}': "0x90"}, {'up{job="fila"}': "1x90"}),
    "FilaWriteFailures": (
        {'fila_broker_write_failures_total{instance="s"}': "0+1x90"},
        {'fila_broker_write_failures_total{instance="s"}': "7x90"},
    ),
    "FilaStoreFull": ({'fila_store_full{instance="s"}': "1x90"}, {'fila_store_full{instance="s"}': "0x90"}),
    "FilaDiskFillsSoon": (  # 10 GB, and 40 MB a minute less: empty in two hours and a half
        {'fila_store_free_bytes{instance="s"}': "10000000000-40000000x90"},
        {'fila_store_free_bytes{instance="s"}': "100000000000-40000000x90"},
    ),
    "FilaWriteStalls": (
        {'fila_broker_write_stalls_total{instance="s"}': "0+5x90"},
        {'fila_broker_write_stalls_total{instance="s"}': "5x90"},
    ),
    "FilaProcessorFull": (
        {'fila_process_cpu_seconds_total{instance="s"}': "0+57x90"},
        {'fila_process_cpu_seconds_total{instance="s"}': "0+30x90"},
    ),
    "FilaSlowTurns": (
        {'fila_loop_longest_turn_seconds{kind="tick", instance="s"}': "0.6x90"},
        {'fila_loop_longest_turn_seconds{kind="tick", instance="s"}': "0.4x90"},
    ),
    "FilaOverloaded": (
        {'fila_broker_commands_waiting{instance="s"}': "60000x90"},
        {'fila_broker_commands_waiting{instance="s"}': "40000x90"},
    ),
    "FilaNoConsumers": (
        {
            f"fila_queue_depth{{{QUEUE}}}": "5x90",
            f"fila_queue_delayed{{{QUEUE}}}": "4x90",
            f"fila_queue_consumers{{{QUEUE}}}": "0x90",
        },
        {  # all of them are delayed
            f"fila_queue_depth{{{QUEUE}}}": "5x90",
            f"fila_queue_delayed{{{QUEUE}}}": "5x90",
            f"fila_queue_consumers{{{QUEUE}}}": "0x90",
        },
    ),
    "FilaOldMessages": (
        {f"fila_queue_oldest_age_seconds{{{QUEUE}}}": "1000x90"},
        {'fila_queue_oldest_age_seconds{queue_id="q.dlq", instance="s"}': "1000x90"},
    ),
    "FilaQueueNearlyFull": (
        {f"fila_queue_used{{{QUEUE}}}": "0.95x90"},
        {f"fila_queue_used{{{QUEUE}}}": "0.85x90"},
    ),
    "FilaDeadLetters": (
        {f"fila_messages_dead_lettered_total{{{QUEUE}}}": "0+1x90"},
        {f"fila_messages_dead_lettered_total{{{QUEUE}}}": "9x90"},
    ),
    "FilaLeasesExpire": (
        {
            f"fila_messages_expired_total{{{QUEUE}}}": "0+10x90",
            f"fila_messages_leased_total{{{QUEUE}}}": "0+100x90",
        },
        {
            f"fila_messages_expired_total{{{QUEUE}}}": "0+4x90",
            f"fila_messages_leased_total{{{QUEUE}}}": "0+100x90",
        },
    ),
    "FilaUnfairShare": (
        {f"fila_fairness_fair_share_ratio{{{KEY}}}": "0.3x90", f"fila_fairness_pending{{{KEY}}}": "5x90"},
        {f"fila_fairness_fair_share_ratio{{{KEY}}}": "0.3x90", f"fila_fairness_pending{{{KEY}}}": "0x90"},
    ),
    "FilaThrottledForLong": (
        {
            f"fila_throttle_waiting_keys{{{THROTTLE}}}": "2x90",
            f'fila_throttle_decisions_total{{{THROTTLE}, result="pass"}}': "7x90",
        },
        {
            f"fila_throttle_waiting_keys{{{THROTTLE}}}": "2x90",
            f'fila_throttle_decisions_total{{{THROTTLE}, result="pass"}}': "0+1x90",
        },
    ),
    "FilaHookBypassed": (
        {f"fila_lua_circuit_breaker_activations_total{{{HOOK}}}": "0+1x90"},
        {f"fila_lua_circuit_breaker_activations_total{{{HOOK}}}": "1x90"},
    ),
    "FilaHookBudgetSpent": (
        {
            'fila_lua_budget_waiting{instance="s"}': "3x90",
            'fila_lua_budget_exhausted_total{instance="s"}': "0+1x90",
        },
        {
            'fila_lua_budget_waiting{instance="s"}': "3 0x44 3 0x44",
            'fila_lua_budget_exhausted_total{instance="s"}': "0+1x90",
        },
    ),
    "FilaHookErrors": (
        {f'fila_lua_errors_total{{{HOOK}, kind="error"}}': "0+1x90"},
        {f'fila_lua_errors_total{{{HOOK}, kind="error"}}': "4x90"},
    ),
}


def test_every_alert_is_tried():
    assert list(CASES) == NAMES


@pytest.mark.parametrize("labels", [{}, {"docs_url": "https://docs.example/fila"}], ids=["default", "set"])
def test_the_link_of_an_alert_begins_where_the_documentation_is_served(labels, tmp_path):
    base = labels.get("docs_url", "http://127.0.0.1:8000")
    expected = {
        "summary": "The disk of Fila at s is full: producers are refused until messages are consumed or purged.",
        "runbook_url": f"{base}/runbook.html#filastorefull",
    }
    alert = {"exp_labels": {"severity": "critical", "instance": "s"}, "exp_annotations": expected}
    promtool(
        tmp_path,
        {
            "input_series": series({'fila_store_full{instance="s"}': "1x90"}),
            "external_labels": labels,
            "alert_rule_test": [{"eval_time": "5m", "alertname": "FilaStoreFull", "exp_alerts": [alert]}],
        },
    )


def test_each_alert_fires_when_it_should_and_only_then(tmp_path):
    tests = []
    for alert, (bad, good) in CASES.items():
        query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
        one = [{"labels": "{}", "value": 1}]
        for values, expected in ((bad, one), (good, [])):
            asked = {"expr": query, "eval_time": "85m", "exp_samples": expected}
            tests.append({"name": alert, "input_series": series(values), "promql_expr_test": [asked]})
    promtool(tmp_path, *tests)


def series(values):
    return [{"series": name, "values": told} for name, told in values.items()]


def promtool(folder, *tests):
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    shutil.copy(ALERTS, folder)
    page = {
        "rule_files": [ALERTS.name],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m"} | test for test in tests],
    }
    file = folder / "alerts_test.yml"
    file.write_text(yaml.safe_dump(page))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
