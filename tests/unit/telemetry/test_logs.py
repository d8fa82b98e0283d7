import io
import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from fila.config import LogConfig
from fila.telemetry.logs import REDACTED, REDACTED_KEYS, configure, redact

SECRET = "tenant-secret"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@dataclass
class Envelope:
    body: str


@pytest.fixture(autouse=True)
def restored():
    """Logging is global: each test gives it back as it was."""
    root = logging.getLogger()
    ours = logging.getLogger("fila")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)
    structlog.reset_defaults()


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logged(**values):
    stream = io.StringIO()
    configure(LogConfig(format="json"), stream)
    structlog.get_logger("fila.test").info("happened", **values)
    [line] = lines(stream)
    return line


def test_a_json_line_holds_event_level_logger_and_values():
    line = logged(queue="orders", count=3, ratio=0.5, ok=True, nothing=None)
    line.pop("timestamp")
    given_values = {"queue": "orders", "count": 3, "ratio": 0.5, "ok": True, "nothing": None}
    assert line == {"event": "happened", "level": "info", "logger": "fila.test"} | given_values


def test_a_timestamp_is_iso_in_utc():
    stamp = logged()["timestamp"]
    assert stamp.endswith("Z")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()) < 60


@pytest.mark.parametrize(
    "form, stream, is_json",
    [
        ("auto", io.StringIO, True),
        ("auto", Terminal, False),
        ("json", Terminal, True),
        ("pretty", io.StringIO, False),
    ],
)
def test_auto_is_pretty_on_a_terminal_only_and_the_other_forms_are_what_they_say(form, stream, is_json):
    out = stream()
    configure(LogConfig(format=form), out)
    structlog.get_logger("fila.test").info("happened")
    assert "happened" in out.getvalue()
    assert out.getvalue().startswith("{") == is_json


def test_pretty_has_colours_on_a_terminal_only():
    for stream in (Terminal(), io.StringIO()):
        configure(LogConfig(format="pretty"), stream)
        structlog.get_logger("fila.test").info("happened")
        assert ("\x1b[" in stream.getvalue()) == stream.isatty()


def test_stdlib_logging_comes_out_in_the_same_form():
    stream = io.StringIO()
    configure(LogConfig(format="json"), stream)
    logging.getLogger("grpc").warning("lost %s", "peer", extra={"attempt": 2, "payload": SECRET})
    [line] = lines(stream)
    assert (line["event"], line["level"], line["logger"], line["attempt"]) == ("lost peer", "warning", "grpc", 2)
    assert line["payload"] == REDACTED


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_nothing_below_the_level_is_written(level):
    stream = io.StringIO()
    configure(LogConfig(format="json", level=level), stream)
    for source in (structlog.get_logger("fila.test"), logging.getLogger("library")):
        for name in ("debug", "info", "warning", "error"):
            getattr(source, name)("happened")
    order = ["debug", "info", "warning", "error"]
    of_libraries = max(order.index(level), order.index("warning"))  # below, they may show what users send
    assert [line["level"] for line in lines(stream)] == order[order.index(level) :] + order[of_libraries:]


def test_configuring_again_replaces_and_never_doubles():
    first, second = io.StringIO(), io.StringIO()
    log = structlog.get_logger("fila.test")
    configure(LogConfig(format="json"), first)
    configure(LogConfig(format="json"), second)
    log.info("happened")
    assert (len(lines(first)), len(lines(second))) == (0, 1)


def test_stderr_is_the_default(capsys):
    configure(LogConfig(format="json"))
    structlog.get_logger("fila.test").info("happened")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "happened"


@pytest.mark.parametrize("key", [*sorted(REDACTED_KEYS), "Payload", "HEADERS"])
@pytest.mark.parametrize("form", ["json", "pretty"])
def test_payloads_and_headers_are_redacted(key, form):
    stream = io.StringIO()
    configure(LogConfig(format=form), stream)
    structlog.get_logger("fila.test").info("happened", **{key: {"x": SECRET}})
    assert SECRET not in stream.getvalue()
    assert REDACTED in stream.getvalue()


def test_bytes_are_shown_by_length_and_objects_by_type():
    line = logged(body=SECRET.encode(), message=Envelope(SECRET), kind=Envelope)
    assert (line["body"], line["message"], line["kind"]) == ("<13 bytes>", "<Envelope>", "Envelope")


def test_names_of_things_are_shown_as_text():
    line = logged(id=UUID(int=1), path=Path("a/b"), error=ValueError("bad"))
    assert (line["id"], line["path"], line["error"]) == ("00000000-0000-0000-0000-000000000001", "a/b", "bad")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_traceback_has_the_error_and_no_local_variables(stream):
    out = stream()
    configure(LogConfig(), out)
    payload = "".join(reversed(SECRET))  # not in the source, so it can only come from a local variable
    try:
        raise ValueError("bad input", len(payload))
    except ValueError:
        structlog.get_logger("fila.test").exception("failed")
        logging.getLogger("library").exception("failed")
    assert out.getvalue().count("bad input") >= 2
    assert payload not in out.getvalue()


KEYS = st.sampled_from(["id", "Payload", "headers", "meta"]) | st.text(max_size=3)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


def below(key, value):
    """Every value with the key it is under, at any depth."""
    yield key, value
    if isinstance(value, dict):
        for k, v in value.items():
            yield from below(k, v)
    elif isinstance(value, list):
        for item in value:
            yield from below(key, item)


@given(st.dictionaries(KEYS, VALUES))
def test_nothing_under_a_redacted_key_and_no_bytes_survive_at_any_depth(event):
    redacted = redact(None, "info", event)
    assert redacted.keys() == event.keys()
    json.dumps(redacted)
    for top, whole in redacted.items():
        for key, value in below(top, whole):
            assert key.lower() not in REDACTED_KEYS or value == REDACTED
            assert not isinstance(value, bytes)
