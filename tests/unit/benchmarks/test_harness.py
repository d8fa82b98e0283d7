"""Client processes: what is measured, and what happens when they fail."""

import os
import time

import pytest

from benchmarks.harness import ClientFailed, ClientProcess, Gate, run_together


def spin(gate: Gate, seconds: float) -> str:
    time.sleep(0.2)  # outside of the gate: not measured
    with gate:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
    time.sleep(0.2)
    return "done"


def fail(gate: Gate) -> None:
    with gate:
        raise ValueError("no luck")


def vanish(gate: Gate) -> None:
    os._exit(3)


def test_only_what_is_inside_the_gate_is_measured():
    client = ClientProcess(spin, 0.1)
    measured = run_together(None, [client])
    [outcome] = measured.clients
    assert outcome.result == "done"
    assert outcome.ended - outcome.began == pytest.approx(measured.seconds)
    assert outcome.cpu_s >= 0.1


def test_the_time_of_several_clients_is_from_the_first_start_to_the_last_end():
    measured = run_together(None, [ClientProcess(spin, 0.05), ClientProcess(spin, 0.01)])
    first, last = min(each.began for each in measured.clients), max(each.ended for each in measured.clients)
    assert measured.seconds == pytest.approx(last - first)
    assert measured.client_cpu_s >= 0.06


@pytest.mark.parametrize("work,said", [(fail, "no luck"), (vanish, "ended without a word")])
def test_a_client_that_fails_is_reported_not_waited_for(work, said):
    with pytest.raises(ClientFailed, match=said):
        run_together(None, [ClientProcess(work)])
