"""How text of others is shown: harmless, bounded, and true."""

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client import EnqueueDecision, FailedAttempt, HookTrial, PeekedMessage
from fila.console import limits, payload
from fila.console.commands import command
from fila.console.letters import by_error, filter_of, options_of
from fila.console.lua_source import pieces
from fila.console.reports import read_report, reports
from fila.console.trials import differences
from fila.console.urls import local
from fila.console.words import NONE, percent, rate, seconds, short, visible

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.text(max_size=400))
def test_shown_text_has_no_control_characters_and_an_end(text):
    shown = visible(text, 50)
    assert shown.isprintable()
    assert len(shown) <= 50 * 10 + 30


def test_what_could_reorder_or_colour_text_is_shown_as_what_it_is():
    assert visible("a\u202eb\x1b[31m") == "a\\u202eb\\x1b[31m"
    assert visible("x" * 400).endswith("… (100 more)")


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=4))
def test_a_shell_reads_the_words_of_a_command_as_they_are(words):
    line = command("queue", *words)
    assert line.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"fila() {{ printf '%s\\0' \"$@\"; }}; {line}"], capture_output=True, check=True
    )
    assert done.stdout.decode().split("\0")[:-1] == ["queue", *words]


def test_options_without_a_value_are_left_out():
    line = command("throttle", "set", "a b", options={"rate": 2.0, "burst": None, "max-in-flight": ""})
    assert shlex.split(line) == ["fila", "throttle", "set", "a b", "--rate", "2"]


def test_numbers_read_well():
    assert [short(number) for number in (0, 999, 9_999, 12_345, 2_500_000)] == ["0", "999", "9,999", "12.3k", "2.5M"]
    times = {0: "0", 0.025: "25 ms", 1.25: "1.2 s", 12: "12 s", 150: "2 min", 7300: "2 h"}
    assert {value: seconds(value) for value in times} == times
    assert [rate(number) for number in (None, 0.0, 0.4, 12.7)] == [NONE, "0", "0.4", "13"]
    assert [percent(part) for part in (0.034, 0.5)] == ["3.4%", "50%"]


@given(st.binary(max_size=300))
def test_every_payload_has_all_views_and_none_holds_control_characters(body):
    for shown in (payload.as_text(body), payload.as_hex(body), payload.as_json(body) or ""):
        assert shown.replace("\n", "").replace("\t", "").isprintable()


def test_the_best_view_of_a_payload():
    assert payload.best_view(b'{"a": 1}') == "json"
    assert payload.best_view("grüße".encode()[:-2]) == "text"
    assert payload.best_view(b"\x00\xff\x01") == "hex"
    assert payload.as_json(b"[" * 100_000) is None


@given(st.text(alphabet="abc \n\"'[]-1\\funcionend", max_size=200))
def test_highlighting_loses_nothing(source):
    assert "".join(piece.text for piece in pieces(source)) == source


def test_lua_is_coloured_by_what_it_is():
    kinds = {piece.text: piece.kind for piece in pieces('function on_enqueue(m) return { a = "x", b = 2 } end -- why')}
    assert kinds["function"] == "k"
    assert kinds["on_enqueue"] == "fn"
    assert kinds['"x"'] == "s"
    assert kinds["2"] == "m"
    assert kinds["-- why"] == "cm"


def letter(number, error, key="acme"):
    attempts = (FailedAttempt(1, NOW, "nacked", error),)
    return PeekedMessage(str(number), "q.dlq", {}, b"", 0, key, 1, 5, 1, (), 1, NOW, "ready", None, attempts, None)


def test_equal_errors_fall_together_whatever_their_numbers():
    groups = by_error([letter(1, "timeout after 30 ms"), letter(2, "timeout after 7 ms", "b"), letter(3, "other")])
    assert [(group.text, group.count, group.literal) for group in groups] == [
        ("timeout after # ms", 2, "timeout after"),
        ("other", 1, "other"),
    ]


def test_a_filter_is_what_the_form_says_for_sdk_and_shell():
    fields = {"error": "no", "key": "", "header": "region=eu", "older_min": "2", "newer_min": ""}
    assert filter_of(fields) == {"error": "no", "headers": {"region": "eu"}, "min_age_ms": 120_000}
    assert options_of(fields)["older-than"] == "2m"


def trial(message_id, weight):
    return HookTrial(message_id, EnqueueDecision("k", weight, (), 1, None, None, ""), None)


def test_only_decisions_that_differ_are_told():
    found = differences([trial("a", 1), trial("b", 2)], [trial("a", 1), trial("b", 5), trial("c", 9)])
    assert [(one.message_id, one.changes) for one in found] == [("b", (("on_enqueue: weight", "2", "5"),))]


@pytest.mark.parametrize("target", ["https://evil.example", "//evil", "/\\evil", "javascript:x", "", "/a\nb"])
def test_no_form_leads_to_another_site(target):
    assert local(target) == "/"
    assert local("/queue?name=a") == "/queue?name=a"


def test_reports_are_read_from_their_folder_alone(tmp_path):
    folder = tmp_path / "reports"
    (folder / "runs").mkdir(parents=True)
    (folder / "report.html").write_text("one")
    (folder / "runs" / "two.html").write_text("two")
    (folder / ".staging.html").write_text("hidden folders only are left out")
    (tmp_path / "secret.html").write_text("secret")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    assert {"report.html", "runs/two.html"} <= {each.name for each in reports(folder)}
    assert read_report(folder, "runs/two.html") == b"two"
    for name in ("../secret.html", "link.html", str(tmp_path / "secret.html"), "runs"):
        assert read_report(folder, name) is None


def test_the_page_lists_every_bound_with_its_value():
    shown = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", (ROOT / "docs/console.md").read_text(), re.MULTILINE))
    bounds = {name: value for name, value in vars(limits).items() if name.isupper()}
    values = {name: f"{value:,g}" if value < 1e6 else f"{value:,}" for name, value in bounds.items()}
    assert json.dumps(shown, sort_keys=True, indent=1) == json.dumps(values, sort_keys=True, indent=1)
