"""What `fila journal` says without a broker."""

import sys

from click.testing import CliRunner

from fila.cli.journal import as_json, text
from fila.cli.main import cli
from fila.client import JournalEntry


def entry(**values):
    plain = {name: "" if kind is str else 0 for name, kind in JournalEntry.__annotations__.items()}
    return JournalEntry(**plain | values)


def test_without_pyarrow_an_export_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = CliRunner().invoke(cli, ["journal", "export", str(tmp_path / "x.parquet")])
    assert result.exit_code == 1
    assert "pip install 'fila-client[export]'" in result.output
    assert not list(tmp_path.iterdir())


def test_what_came_from_a_producer_cannot_move_the_cursor():
    shown = text(entry(kind="enqueued", queue="q\x1b[2J", fairness_key="k\x1b[1m", message_id="id", note="\r"))
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_json_leaves_out_what_does_not_apply():
    assert as_json(entry(seq=3, kind="acked", queue="q", attempt=1)) == {
        "seq": 3,
        "kind": "acked",
        "queue": "q",
        "attempt": 1,
    }
