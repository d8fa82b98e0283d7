"""The demonstration keeps what it promises, small."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import fields, replace
from pathlib import Path

import pytest

from fila import JournalEntry

DEMO = Path(__file__).parents[2] / "examples" / "demo"


@pytest.mark.slow
def test_the_demonstration_proves_its_claims_in_a_pipe_and_its_console_can_be_opened():
    command = [sys.executable, "-m", "examples.demo.run", "--messages", "8000", "--stay"]
    output = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=DEMO.parents[1]
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:  # ends with the demonstration
            output += line
            if "Ctrl-C" in line:
                try:
                    links = re.findall(r"http://\S+/queue\?name=jobs", output)
                    with urllib.request.urlopen(links[0]) as page:
                        assert "vip" in page.read().decode()
                finally:
                    demo.send_signal(signal.SIGINT)
    assert demo.returncode == 0, output
    assert "PASSED" in output
    assert "kill -9" in output
    assert "\x1b" not in output
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(links[0])


@pytest.mark.slow
def test_the_demonstration_of_reconciliation_proves_its_claims_in_a_pipe():
    command = [sys.executable, "-m", "examples.reconcile.run", "--reports", "10"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, cwd=DEMO.parents[1])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASSED" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.fixture
def ledger(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    import ledger

    return ledger


def run_of(ledger, happened, acked=()):
    """A run whose journal says so: pairs of what happened and to which message, one a second.

    Messages are named by number and tenant, and consumers received what the broker handed out.
    """
    tenants = [ledger.Tenant("noisy", 1, 4), ledger.Tenant("vip", 2, 2), ledger.Tenant("quiet", 1)]
    book = ledger.Ledger(tenants)
    for seq, (kind, message_id) in enumerate(happened):
        tenant = message_id.split("-")[1]
        blank = JournalEntry(*(field.type() for field in fields(JournalEntry)))
        at = seq * 1_000_000_000
        book.journal.append(replace(blank, seq=seq, at_ns=at, kind=kind, fairness_key=tenant, message_id=message_id))
        if kind == "enqueued":
            book.enqueued.append(ledger.Enqueued(message_id, tenant))
        elif kind == "leased":
            book.receive([ledger.Delivered(message_id, tenant)])
    book.acked.update(acked)
    return book


BACKLOG = [("enqueued", f"{n}-noisy") for n in range(4)] + [("enqueued", "4-vip"), ("enqueued", "5-vip")]
TURNS = ["4-vip", "0-noisy", "6-quiet", "5-vip", "1-noisy", "2-noisy", "3-noisy"]


def test_the_wait_of_a_message_is_what_the_broker_decided_and_not_when_a_consumer_ran(ledger):
    """Consumers that get no core hear of it late, and in any order."""
    book = run_of(
        ledger, [("enqueued", "0-noisy"), ("enqueued", "1-quiet"), ("leased", "1-quiet"), ("leased", "0-noisy")]
    )
    late = run_of(ledger, [])
    late.journal, late.enqueued = book.journal, book.enqueued
    late.receive(reversed(book.delivered))
    assert late.waits() == book.waits()
    assert [(each.tenant.name, each.deliveries) for each in book.waits()] == [("noisy", (1,)), ("quiet", (0,))]


def test_what_was_on_its_way_when_the_server_died_has_had_its_turn(ledger):
    """Its second delivery waits for the end of the lease, which says nothing about fairness."""
    happened = [("enqueued", "0-noisy"), ("enqueued", "1-quiet"), ("leased", "1-quiet"), ("leased", "0-noisy")]
    book = run_of(ledger, [*happened, *[("leased", "0-noisy")] * 500, ("leased", "1-quiet")])
    assert [each.deliveries for each in book.waits()] == [(1,), (0,)]


def test_a_lost_message_is_found(ledger):
    book = run_of(ledger, [("enqueued", "0-noisy"), ("enqueued", "1-vip"), ("leased", "0-noisy")])
    assert book.lost() == {"1-vip"}


def test_an_acked_message_that_comes_back_is_found(ledger):
    happened = [("enqueued", "0-noisy"), ("leased", "0-noisy"), ("acked", "0-noisy"), ("leased", "0-noisy")]
    assert run_of(ledger, happened, acked=["0-noisy"]).came_back() == {"0-noisy"}


def test_a_confirmed_ack_that_the_broker_does_not_know_is_found(ledger):
    happened = [("enqueued", "0-noisy"), ("leased", "0-noisy")]
    assert run_of(ledger, happened, acked=["0-noisy"]).came_back() == {"0-noisy"}


def test_an_unacked_message_may_come_back(ledger):
    happened = [("enqueued", "0-noisy"), ("leased", "0-noisy"), ("leased", "0-noisy"), ("acked", "0-noisy")]
    book = run_of(ledger, happened, acked=["0-noisy"])
    assert book.came_back() == set()
    assert book.redelivered() == 1


def test_shares_are_counted_while_all_have_a_backlog(ledger):
    happened = [*BACKLOG, ("enqueued", "6-quiet"), *(("leased", each) for each in TURNS)]
    noisy, vip = run_of(ledger, happened).shares()
    assert (noisy.delivered, vip.delivered) == (1, 2)
    assert noisy.got == pytest.approx(noisy.entitled) == pytest.approx(1 / 3)
    assert (noisy.under_fifo, vip.under_fifo) == (1.0, 0.0)


def test_waits_are_set_against_first_in_first_out(ledger):
    happened = [*BACKLOG, ("leased", TURNS[0]), ("enqueued", "6-quiet"), *(("leased", each) for each in TURNS[1:])]
    quiet = run_of(ledger, happened).waits()[2]
    assert (quiet.deliveries, quiet.seconds) == ((1,), (2.0,))
    assert (quiet.fifo_deliveries, quiet.fifo_seconds) == ((5,), (6.0,))
