"""The watchdog of a real server: what keeps its event loop is in the metrics and in the log."""

import json
import re

from fila import Client
from tests.helpers.telemetry import Watched, eventually, get

SLOW_SCRIPT = """
function on_enqueue(message)
  local n = 0
  for i = 1, 1000000 do n = n + i end
  return { fairness_key = "k" }
end
"""


def turns(watched):
    """Of each kind: how many turns there were, and the longest."""
    text = get(watched.http + "/metrics")[1]
    counts = dict(re.findall(r'^fila_loop_turn_seconds_count\{kind="(\w+)"\} (\d+)', text, re.MULTILINE))
    longest = dict(re.findall(r'^fila_loop_longest_turn_seconds\{kind="(\w+)"\} ([\d.e+-]+)', text, re.MULTILINE))
    return {kind: (int(counts[kind]), float(longest[kind])) for kind in counts}


def test_every_kind_of_work_is_measured_and_a_slow_tick_is_logged_with_its_commands(tmp_path):
    config = '[server]\nslow_turn_ms = 3\n[telemetry]\nprometheus_listen = "127.0.0.1:0"\n[lua]\ntimeout_ms = 1000\n'
    with Watched(tmp_path, config=config) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q", script=SLOW_SCRIPT)
        client.enqueue("q", None, b"payload-secret")
        for message in client.consume("q"):
            message.ack()
            break
        before = turns(server)
        assert all(before[kind][0] > 0 for kind in ("tick", "receive", "call"))
        assert turns(server)["look"][0] > 0
        assert before["tick"][1] > 0.003

        def logged():
            client.enqueue("q", None, b"payload-secret")  # others may have been logged within the second
            lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
            return [line for line in lines if line.get("kind") == "tick" and "Enqueue" in line.get("doing", "")]

        assert eventually(logged, "a slow tick in the log")[0]["ms"] >= 3
        assert "payload-secret" not in server.log
