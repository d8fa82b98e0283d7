"""What the guard takes for slower, and that its paths do what they are named for."""

import json

import pytest

from benchmarks.guard import check, meter
from benchmarks.guard.__main__ import main
from benchmarks.guard.check import judge
from benchmarks.guard.paths import PATHS, reference

THRESHOLDS = {"allowed": {"cpu": 1.5, "instructions": 1.2}, "cpu": {"drain": 4.0}, "instructions": {"drain": 4.0}}


@pytest.mark.parametrize("method,ratio,slower", [("cpu", 6.0, False), ("cpu", 6.1, True), ("perf", 5.0, True)])
def test_a_path_is_slower_when_it_is_above_what_its_kind_of_measure_allows(method, ratio, slower):
    [verdict] = judge(method, {"drain": ratio}, THRESHOLDS)
    assert verdict.slower is slower


def test_a_path_that_became_faster_or_is_new_fails_nobody():
    verdicts = judge("cpu", {"drain": 0.1, "new": 100.0}, THRESHOLDS)
    assert not any(each.slower for each in verdicts)


def test_instructions_are_read_from_either_counter():
    assert meter.read_count("perf", "1234567,,instructions:u,99,100.00,,\n") == 1_234_567
    assert meter.read_count("valgrind", "==1== \n==1== I   refs:      1,417,185,400\n") == 1_417_185_400


def test_a_counter_that_counts_nothing_is_no_zero():
    with pytest.raises(ValueError, match="perf counted nothing"):
        meter.read_count("perf", "<not supported>,,instructions:u,0,100.00,,\n")


def test_every_path_has_a_stored_ratio_in_both_kinds():
    stored = check.load()
    assert stored["instructions"].keys() == stored["cpu"].keys() == PATHS.keys()
    assert min(stored["allowed"].values()) > 1


@pytest.mark.parametrize("name", PATHS)
def test_every_path_runs(name):
    PATHS[name](20)()


def test_the_reference_takes_every_message():
    assert reference(20)() == sum(range(20)) + 20 * len("tenant-0")


def test_the_command_fails_when_a_path_is_slower(tmp_path, monkeypatch, capsys):
    stored = {"allowed": {"cpu": 1.5}, "cpu": {"drain": 1.0, "encode": 2.0}}
    file = tmp_path / "thresholds.json"
    file.write_text(json.dumps(stored))
    monkeypatch.setattr(check, "THRESHOLDS", file)
    monkeypatch.setattr(meter, "ratios", lambda *_: {"drain": 2.0, "encode": 2.0})
    assert main(["--method", "cpu"]) == 1
    assert "clearly slower: drain" in capsys.readouterr().out
    assert main(["--method", "cpu", "--update"]) == 0
    assert json.loads(file.read_text())["cpu"] == {"drain": 2.0, "encode": 2.0}
