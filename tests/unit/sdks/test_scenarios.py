"""Scenarios are data: what they may say, what they must cover, and when a run counts as passed."""

import re
from pathlib import Path

import pytest

from sdks.conformance.__main__ import LANGUAGES, main
from sdks.conformance.matching import Mismatch, check, expand, pick
from sdks.conformance.report import BEGIN, END, TITLES, Results, between
from sdks.conformance.scenario import FOLDER, BadScenario, all_steps, load

SCENARIOS = load()
GUIDE = (FOLDER.parent / "DRIVER.md").read_text()


def test_every_operation_of_a_driver_is_used_by_a_quick_scenario():
    rows = re.findall(r"^\| (`.*?`) \|", GUIDE, re.MULTILINE)
    told = {op for row in rows for op in re.findall(r"`(\w+)`", row)}
    used = {step["op"] for each in SCENARIOS if each.fast for step in all_steps(each.steps) if "op" in step}
    assert len(told) > 30
    assert told - used == set()


def test_what_the_suite_is_for_is_there():
    faults = {step["do"] for each in SCENARIOS for step in all_steps(each.steps) if "do" in step}
    assert {"kill_server", "cut", "cut_every", "lose_answers", "lose_requests", "delay_answers"} <= faults
    assert {each.server for each in SCENARIOS} >= {"own", "large", "tls", "mutual", "keys", "cluster"}


@pytest.mark.parametrize(
    "text, fault",
    [
        ("steps = []", "missing"),
        ('about = "x"\nsteps = []', "cannot fail"),
        ('about = "x"\nsteps = [{ op = "hello", expcet = {} }]', "unknown fields"),
        ('about = "x"\nsteps = [{ expect = {} }]', "one of"),
        ('about = "x"\nserver = "mars"\nsteps = []', "no such server"),
        ('about = "x"\nsteps = [{ op = }]', "Invalid value"),
    ],
)
def test_a_scenario_that_is_not_well_formed_is_an_error(tmp_path, text, fault):
    (tmp_path / "a.toml").write_text(f'[[scenario]]\nname = "a"\n{text}\n')
    with pytest.raises(BadScenario, match=fault):
        load(tmp_path)


@pytest.mark.parametrize(
    "expected, found",
    [
        ({"a": 1}, {"a": 2}),
        ({"a": True}, {"a": 1}),
        ([1, 2], [1]),
        ({"@len": 2}, [1]),
        ({"@unique": True}, [1, 1]),
        ({"@numbers": 3}, ["0 x", "2 x", "1 x"]),
        ({"@numbers_any_order": 3}, ["0 x", "1 x", "1 x"]),
        ({"@each": {"id": {"@any": True}}}, [{"id": "x"}, {}]),
        ({"@at_most_more": [5, 2]}, 8),
        ({"@contains": "x"}, ["y"]),
        ({"@set": [1, 2]}, [2, 2]),
    ],
)
def test_what_is_not_as_expected_does_not_match(expected, found):
    with pytest.raises(Mismatch):
        check(expected, found)


def test_what_is_as_expected_matches():
    check({"a": {"@at_least": 1}, "b": [{"@in": ["x", "y"]}]}, {"a": 1, "b": ["y"], "c": 3})
    check({"@numbers": 2, "@unique": True}, ["0 x", "1 x"])
    check({"@set": [1, 2]}, [2, 1])
    assert expand({"a": "$b", "c": "x-$b"}, {"b": 7}) == {"a": 7, "c": "x-7"}
    assert pick({"a": [{"b": 1}, {"b": 2}]}, "a.*.b") == [1, 2]


def test_a_variable_that_nobody_has_set_is_an_error():
    with pytest.raises(KeyError, match="variable"):
        expand("$nothing", {})


def test_nothing_that_ran_is_not_a_success():
    assert Results([], ["go"]).exit_code() == 1
    assert Results(SCENARIOS[:1], []).exit_code() == 1
    results = Results(SCENARIOS[:2], ["go"])
    results.add("go", SCENARIOS[0].name, "")
    assert results.exit_code() == 1  # one did not run
    results.add("go", SCENARIOS[1].name, "")
    assert results.exit_code() == 0
    results.add("go", SCENARIOS[1].name, "step 1")
    assert results.exit_code() == 1
    assert "failed: " + SCENARIOS[1].name in results.line_of("go", 1)


def test_unknown_names_are_refused():
    for arguments in (["--sdk", "cobol"], ["--only", "nothing"], ["--write", "--fast"]):
        with pytest.raises(SystemExit):
            main(arguments)


def test_a_table_goes_between_its_markers_and_nowhere_else():
    assert between(f"a {BEGIN} old {END} b", BEGIN, END, "new") == f"a {BEGIN}\n\nnew\n\n{END} b"
    with pytest.raises(ValueError, match="has no"):
        between("a page", BEGIN, END, "new")


def test_every_language_has_a_folder_with_the_same_targets():
    sdks = Path(FOLDER).parents[1]
    assert set(TITLES) == set(LANGUAGES)
    for sdk in LANGUAGES:
        made = (sdks / sdk / "Makefile").read_text()
        for target in ("setup", "proto", "proto-check", "check", "test", "driver"):
            assert re.search(rf"^[\w -]*\b{target}\b[\w -]*:", made, re.MULTILINE), f"{sdk} has no target {target}"
