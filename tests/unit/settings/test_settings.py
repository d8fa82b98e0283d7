"""Sections and layers: what is taken, what is refused, and in which words."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.settings import (
    Layers,
    Section,
    SettingsError,
    choice,
    flag,
    mapping,
    number,
    read_toml,
    seconds,
    text,
    text_list,
    whole_number,
)


class OtherError(SettingsError):
    pass


@dataclass(frozen=True, slots=True)
class Worker(Section):
    url: str = text(expected="a URL", accepts=lambda url: "://" in url, secret=True)
    concurrency: int = whole_number(4, 1, 100)
    grace: float = seconds(30.0, low=0)
    wait: float = seconds(1.0)
    jitter: float = number(0.1, 0, 1)
    mode: str = choice("fast", "safe")
    loud: bool = flag(default=False, words=True)
    names: tuple[str, ...] = text_list()
    levels: Mapping[str, int] = mapping({"low": 1}, "levels", lambda found: all(type(v) is int for v in found.values()))
    made_by: str = "nobody"

    def check(self):
        self.require(self.wait <= self.concurrency, "wait <= concurrency")


@dataclass(frozen=True, slots=True)
class Strict(Section):
    error = OtherError

    size: int = whole_number(1, 1, 9)


def layers(**tables):
    made = Layers({"worker": Worker, "strict": Strict})
    made.add_tables(tables, "some.toml")
    return made


def refusal(**tables):
    with pytest.raises(SettingsError) as refused:
        layers(**tables).build_all()
    return str(refused.value)


def test_what_is_not_set_has_its_default():
    made = layers(worker={"url": "a://b", "concurrency": 7}).build("worker")
    assert made == Worker("a://b", concurrency=7)
    assert (made.grace, made.mode, made.names, made.levels) == (30.0, "fast", (), {"low": 1})


def test_a_later_layer_wins_and_leaves_the_rest():
    made = layers(worker={"url": "a://b", "concurrency": 7, "wait": 2})
    made.add_texts({"WAIT": "3.5", "LOUD": "yes", "NAMES": "a, b", "OTHER": "x"}, {"WAIT": ("worker", "wait")})
    made.add_texts({"LOUD": "yes", "NAMES": "a, b"}, {"LOUD": ("worker", "loud"), "NAMES": ("worker", "names")})
    assert made.build("worker") == Worker("a://b", concurrency=7, wait=3.5, loud=True, names=("a", "b"))


@pytest.mark.parametrize(
    "tables, message",
    [
        ({"wroker": {}}, "unknown section 'wroker': expected one of worker, strict (did you mean worker?)"),
        ({"worker": 3}, "worker = 3: expected a section, [worker]"),
        ({"strict": {"sise": 1}}, "unknown key strict.sise: expected one of size (did you mean size?)"),
        ({"worker": {}}, "worker.url is missing: expected a URL"),
        ({"worker": {"concurrency": 101}}, "worker.concurrency = 101: expected a whole number from 1 to 100"),
        ({"worker": {"wait": 0}}, "worker.wait = 0: expected a number of seconds, more than 0, at most 1000000000"),
        ({"worker": {"grace": -1}}, "worker.grace = -1: expected a number of seconds, at least 0, at most 1000000000"),
        ({"worker": {"jitter": 2}}, "worker.jitter = 2: expected a number from 0 to 1"),
        ({"worker": {"mode": "slow"}}, 'worker.mode = \'slow\': expected one of "fast", "safe"'),
        ({"worker": {"loud": 1}}, "worker.loud = 1: expected true or false"),
        ({"worker": {"names": "ab"}}, "worker.names = 'ab': expected a list of names"),
        ({"worker": {"levels": {"low": "x"}}}, "worker.levels = {'low': 'x'}: expected levels"),
        ({"worker": {"url": "a://b", "wait": 5}}, "Worker: expected wait <= concurrency"),
        ({"worker": {"concurrency": 1 << 60_000}}, "worker.concurrency = a number of too many digits: expected"),
    ],
)
def test_what_is_refused_is_named_in_one_line_with_file_and_what_is_allowed(tables, message):
    said = refusal(**tables)
    assert said.startswith(f"some.toml: {message}")
    assert "\n" not in said


def test_a_field_that_nobody_may_set_is_an_unknown_key():
    assert "unknown key worker.made_by" in refusal(worker={"url": "a://b", "made_by": "me"})
    assert layers(worker={"url": "a://b"}).build("worker", made_by="us").made_by == "us"


def test_a_variable_that_is_no_number_is_shown_as_it_was_written():
    with pytest.raises(
        SettingsError, match=r"^N: worker\.concurrency = 'many': expected a whole number from 1 to 100$"
    ):
        layers().add_texts({"N": "many"}, {"N": ("worker", "concurrency")})


def test_no_message_shows_a_secret():
    assert refusal(worker={"url": "hunter2"}) == "some.toml: worker.url: expected a URL"
    with pytest.raises(SettingsError) as refused:
        Worker("hunter2")
    assert str(refused.value) == "Worker.url: expected a URL"
    assert "hunter2" not in repr(Worker("a://hunter2"))


def test_a_section_may_have_its_own_error():
    with pytest.raises(OtherError):
        Strict(size=0)
    with pytest.raises(OtherError):
        layers(strict={"size": 0})


@given(st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.booleans(), st.lists(st.integers())))
def test_no_value_is_taken_that_the_rule_does_not_allow(value):
    try:
        made = Worker("a://b", concurrency=100, wait=value, jitter=value)
    except SettingsError:
        return
    assert 0 < made.wait <= 100
    assert 0 <= made.jitter <= 1


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path):
    with pytest.raises(SettingsError, match=r"^cannot read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")
    broken = Path(tmp_path / "broken.toml")
    broken.write_text("a = 1" + "0" * 5_000)
    with pytest.raises(SettingsError, match=r"broken\.toml: malformed TOML: .*digits"):
        read_toml(broken)
