"""`fila bench`: the parts that need no broker, and what is refused before one is asked."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli.bench import latencies
from fila.cli.bench.command import MOST_BYTES
from fila.cli.bench.latencies import Latencies, Spread
from fila.cli.bench.load import parts, since, stamp
from fila.client import FilaTimeoutError


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_parts_are_nearly_equal_and_make_the_whole(whole, count):
    found = parts(whole, count)
    assert (len(found), sum(found)) == (count, whole)
    assert max(found) - min(found) <= 1


def test_a_payload_says_how_long_it_was_on_its_way():
    assert 0 <= since(stamp() + b"filler") < 60


@given(st.lists(st.floats(0, 100), min_size=1))
def test_percentiles_are_measured_times_that_so_many_do_not_exceed(times):
    spread = Spread.of([times[::2], times[1::2]])
    for percent, value in ((50, spread.p50), (99, spread.p99)):
        assert value in times
        assert sum(each <= value for each in times) >= len(times) * percent / 100


def test_of_nothing_there_is_no_percentile():
    assert Spread.of([[], []]) is None


@pytest.mark.parametrize("count", [10, 99, 1000, 12_345])
def test_of_many_times_a_bounded_number_is_kept_evenly(monkeypatch, count):
    monkeypatch.setattr(latencies, "MOST", 100)
    measured = Latencies()
    for number in range(count):
        measured.add(float(number))
    kept = measured.kept
    assert min(count, 50) <= len(kept) <= 100
    assert len({after - before for before, after in pairwise(kept)}) == 1
    assert statistics.median(kept) == pytest.approx(count / 2, rel=0.05, abs=1)


@pytest.mark.parametrize(
    "options, said",
    [
        (("--messages", "0"), "--messages"),
        (("--messages", "10000001"), "--messages"),
        (("--size", "7"), "--size"),
        (("--producers", "33"), "--producers"),
        (("--consumers", "0"), "--consumers"),
        (("--time", "2h"), "--time"),
        (("--batch", "10001"), "--batch"),
        (("--messages", "10000", "--size", "1000000"), f"at most {MOST_BYTES:,} are sent"),
        (("throughput",), "is not one of"),
    ],
)
def test_a_load_is_bounded(fila, client, options, said):
    result = fila("bench", *options)
    assert (result.exit_code, client.calls) == (2, [])
    assert said in " ".join(result.stderr.split())


def test_a_broker_that_does_not_answer_is_told_within_the_timeout(fila, client):
    client.error = FilaTimeoutError("no answer")
    assert fila("--timeout", "2", "bench").exit_code == 3
    assert [timeout for _, timeout in fila.connections] == [2.0]
