"""The demonstration keeps what it promises, small."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo"


@pytest.mark.slow
def test_the_demonstration_proves_its_claims_in_a_pipe():
    command = [sys.executable, str(DEMO / "run.py"), "--messages", "8000"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASSED" in result.stdout
    assert "kill -9" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.slow
def test_the_demonstration_of_reconciliation_proves_its_claims_in_a_pipe():
    command = [sys.executable, str(DEMO.parent / "reconcile" / "run.py"), "--reports", "10"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASSED" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.fixture
def ledger(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    import ledger

    return ledger


def run_of(ledger, enqueued, delivered, acked=()):
    """A run in which all was enqueued at second -1, then one message delivered each second from 0 on."""
    tenants = [ledger.Tenant("noisy", 1, 4), ledger.Tenant("vip", 2, 2), ledger.Tenant("quiet", 1)]
    book = ledger.Ledger(tenants)
    book.enqueued += [ledger.Enqueued(f"{n}-{tenant}", tenant) for n, tenant in enumerate(enqueued)]
    book.receive(ledger.Delivered(each, each.split("-")[1], -1.0, float(n)) for n, each in enumerate(delivered))
    for message_id, at in acked:
        book.confirm([message_id], at)
    return book


def test_what_was_on_its_way_when_the_server_died_has_had_its_turn(ledger):
    """Its second delivery waits for the end of the lease, which says nothing about fairness."""
    book = run_of(ledger, ["noisy", "quiet"], ["0-noisy"])
    book.receive([ledger.Delivered("1-quiet", "quiet", -1.0, 500.0, attempt=1)])
    assert [each.tenant.name for each in book.waits()] == ["noisy"]


def test_a_lost_message_is_found(ledger):
    book = run_of(ledger, ["noisy", "vip"], ["0-noisy"])
    assert book.lost() == {"1-vip"}


def test_an_acked_message_that_comes_back_is_found(ledger):
    book = run_of(ledger, ["noisy"], ["0-noisy", "0-noisy"], acked=[("0-noisy", 0.5)])
    assert [each.id for each in book.came_back()] == ["0-noisy"]


def test_an_unacked_message_may_come_back(ledger):
    book = run_of(ledger, ["noisy"], ["0-noisy", "0-noisy"], acked=[("0-noisy", 1.5)])
    assert book.came_back() == []
    assert book.redelivered() == 1


def test_shares_are_counted_while_all_have_a_backlog(ledger):
    enqueued = ["noisy"] * 4 + ["vip"] * 2 + ["quiet"]
    delivered = ["4-vip", "6-quiet", "0-noisy", "5-vip", "1-noisy", "2-noisy", "3-noisy"]
    noisy, vip = run_of(ledger, enqueued, delivered).shares()
    assert (noisy.delivered, vip.delivered) == (1, 2)
    assert noisy.got == pytest.approx(noisy.entitled) == pytest.approx(1 / 3)
    assert (noisy.under_fifo, vip.under_fifo) == (1.0, 0.0)


def test_waits_are_set_against_first_in_first_out(ledger):
    enqueued = ["noisy"] * 4 + ["vip"] * 2 + ["quiet"]
    delivered = ["4-vip", "6-quiet", "0-noisy", "5-vip", "1-noisy", "2-noisy", "3-noisy"]
    quiet = run_of(ledger, enqueued, delivered).waits()[2]
    assert (quiet.deliveries, quiet.seconds) == ((1,), (2.0,))
    assert (quiet.fifo_deliveries, quiet.fifo_seconds) == ((6,), (7.0,))
