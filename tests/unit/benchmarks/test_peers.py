"""What is said of a comparison: the arithmetic, the tables, and that nothing of ours is left out when it loses."""

import json
from itertools import repeat

import pytest

from benchmarks.peers import client
from benchmarks.peers.__main__ import main
from benchmarks.peers.page import render, table
from benchmarks.peers.peers import PEERS
from benchmarks.peers.results import Cell, Comparison, standings
from benchmarks.peers.workloads import WORKLOADS

MACHINE = {
    "cores": 2,
    "cpu": "a processor",
    "memory_bytes": 8e9,
    "system": "Linux",
    "python": "3.11",
    "revision": "abc",
    "load_average": [1.0, 1.0, 1.0],
}
FACTS = {"server": "1.0", "client_version": "2.0", "fsync": "no fsync", "durability": "a log", "client": "a client"}


def rate(speed):
    return {"messages_per_s": speed, "server_cpu_s_per_100k": 1.0, "client_cpu_s_per_100k": 2.0}


def latency(p50):
    return {"p50_ms": p50, "p99_ms": 2 * p50, "server_cpu_s_per_100k": 1.0, "client_cpu_s_per_100k": 2.0}


@pytest.fixture
def comparison():
    return Comparison(
        began="2026-01-02T03:04:05Z",
        seconds=60.0,
        quick=False,
        repeat=3,
        scale={"messages": 1000, "one_by_one": 10, "latency_seconds": 1.0, "noisy": 10, "pending": 100},
        machine=MACHINE,
        load_average_after=[1.5, 1.0, 1.0],
        peers={name: FACTS | {"title": name.upper()} for name in ("fila", "fila-fsync", "redis", "nats")},
        skipped={"beanstalkd": "it is not installed"},
        cells=[
            Cell("nats", "drain", 1024, [rate(50)]),
            Cell("fila", "drain", 1024, [rate(80), rate(100), rate(120)]),
            Cell("fila-fsync", "drain", 1024, [rate(999)]),
            Cell("redis", "drain", 1024, [rate(400)]),
            Cell("fila", "latency", 1024, [latency(2.0)]),
            Cell("redis", "latency", 1024, [latency(4.0)]),
            Cell("nats", "latency", 1024, [], "it broke"),
        ],
    )


def lead_of(comparison, workload, figure):
    return next(each for each in standings(comparison) if (each.workload.name, each.figure.name) == (workload, figure))


def test_we_are_held_against_the_best_of_the_others_and_not_against_ourselves(comparison):
    drain = lead_of(comparison, "drain", "messages_per_s")
    assert (drain.best_peer, drain.best, drain.lead) == ("redis", 400, 0.25)


def test_where_low_is_good_half_of_it_is_twice_as_good(comparison):
    assert lead_of(comparison, "latency", "p50_ms").lead == 2


def test_peers_are_listed_in_their_order_and_without_those_that_have_no_figures(comparison):
    listed = {workload.name: comparison.measured(workload, size) for workload, size in comparison.settings()}
    assert [cell.peer for cell in listed["drain"]] == ["fila", "fila-fsync", "redis", "nats"]
    assert [cell.peer for cell in listed["latency"]] == ["fila", "redis"]


def test_the_page_says_where_we_lose_what_failed_and_what_was_left_out(comparison):
    page = render(comparison, "picture.png", "make it")
    assert "| drain, 1,024 B | throughput | 100 msg/s | 400 msg/s, REDIS | 4.00 x worse |" in page
    assert "| latency at 500 msg/s, 1,024 B | p50 | 2.00 ms | 4.00 ms, REDIS | 2.00 x better |" in page
    assert "100 (80.0 - 120)" in page
    assert "NATS: it broke" in page
    assert "beanstalkd: it is not installed" in page
    assert "quick run" not in page


def test_every_figure_stands_beside_version_and_fsync_policy(comparison):
    page = render(comparison, "picture.png", "make it")
    assert "| REDIS 1.0 | no fsync | 400 |" in page


def test_a_comparison_is_the_same_after_its_file(comparison):
    again = Comparison.from_json(json.loads(json.dumps(comparison.as_json())))
    assert render(again, "p.png", "make it") == render(comparison, "p.png", "make it")


def test_a_file_of_another_command_is_refused():
    with pytest.raises(ValueError, match="format None"):
        Comparison.from_json({})


def test_a_table_escapes_what_would_end_a_cell():
    assert table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"


def test_batches_have_all_payloads_in_their_order():
    payloads = [number.to_bytes(4, "big") for number in range(2 * client.BATCH + 1)]
    made = list(client.batches(iter(payloads)))
    assert [len(batch) for batch in made] == [client.BATCH, client.BATCH, 1]
    assert [payload for batch in made for payload in batch] == payloads


def test_pacing_sends_all_and_never_before_its_time():
    sent = []
    late = client.pace(5, 1e6, lambda: sent.append(1), lambda _: None)
    assert len(sent) == len(late) == 5
    assert min(late) >= 0


def test_peers_and_workloads_have_names_of_their_own():
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)


@pytest.mark.parametrize("option,known", [("--only", "produce, drain"), ("--peers", "fila, fila-fsync")])
def test_an_unknown_name_is_refused_with_the_known_ones(option, known, capsys):
    with pytest.raises(SystemExit):
        main([option, "nonsense"])
    assert f"nothing is called nonsense; there are: {known}" in capsys.readouterr().err


def test_our_own_client_delivers_what_it_sent():
    """The others need their servers, which the benchmark installs; this much of the interface is always checked."""
    peer = PEERS[0]
    with peer.server() as server:
        server.setup()
        ours = peer.connect(server.port)
        ours.send(repeat(b"bulk", 3), "tenant")
        ours.send_one(b"single")
        got = []

        def take(payloads):
            got.extend(payloads)
            return len(got) < 4

        ours.receive(take)
        ours.close()
    assert sorted(got) == [b"bulk", b"bulk", b"bulk", b"single"]
