"""The pipelines as programs of their own take what `fila pipeline` takes, and end as it does."""

import json

import click
import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from fila.cli.main import cli
from fila.pipelines.submit import archive, daily, fairness, reconcile, stream, whatif
from tests.helpers.spark_journal import Story
from tests.helpers.spark_reports import metric, of_now, report, write_parquet


@pytest.mark.parametrize(
    "program", [archive, daily, fairness, reconcile, stream, whatif], ids=lambda program: program.__name__
)
def test_the_options_are_those_of_the_command(program, capsys):
    name = program.__name__.rpartition(".")[2]
    command = cli.get_command(click.Context(cli), "pipeline").commands[name]
    theirs = {option for each in command.params for option in each.opts} - {"--json"}
    with pytest.raises(SystemExit):
        program.main(["--help"])
    ours = {word.rstrip(",") for word in capsys.readouterr().out.split() if word.startswith("--")}
    assert theirs <= ours


@pytest.mark.parametrize(
    "program, arguments",
    [
        (fairness, ["--journal", "j", "--out", "o", "--window", "0.0001"]),
        (fairness, ["--journal", "j", "--out", "o", "--window", "nan"]),
        (fairness, ["--journal", "j", "--out", "o", "--window", "wide"]),
        (reconcile, ["--reports", "r", "--metrics", "m", "--out", "o", "--config", "/nowhere.toml"]),
        (reconcile, ["--reports", "r", "--metrics", "m", "--out", "o", "--max-refused", "101%"]),
        (daily, ["--reports", "r", "--metrics", "m", "--out", "o", "--date", "yesterday"]),
        (stream, ["--queue", "q", "--metrics", "m", "--out", "o", "--max-messages", "0"]),
        (stream, ["--queue", "q", "--metrics", "m", "--out", "o", "--every", "-1"]),
        (archive, ["--out", "o", "--max-entries", "0"]),
        (whatif, ["--journal", "j", "--out", "o", "--window", "0.0001"]),
    ],
)
def test_arguments_out_of_range_are_refused_before_spark_starts(program, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    assert ended.value.code == 2
    assert f"argument {arguments[-2]}" in capsys.readouterr().err


def test_messages_that_are_not_accounted_for_fail_the_program(spark, tmp_path, capsys):
    story = Story()
    story.tell(0, "created")
    story.tell(1, "enqueued", "m", "a")
    story.tell(2, "counted", count=2)
    journal = story.write(tmp_path / "journal.parquet")
    assert fairness.main(["--journal", journal, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    assert not json.loads(said.out)["conserved"]
    assert said.err.endswith("Error: not every message is accounted for: see the end of the report\n")


def test_a_run_of_which_all_rows_are_refused_fails(spark, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    write_parquet(tmp_path / "reports" / "a.parquet", [report(n, -1) for n in range(3)])
    write_parquet(tmp_path / "metrics" / "a.parquet", [metric(1)])
    paths = [word for name in ("reports", "metrics") for word in (f"--{name}", str(tmp_path / name))]
    said = f"all 3 rows of reports were refused: see {tmp_path}/{{}}/report.html\n"
    assert reconcile.main([*paths, "--out", str(tmp_path / "one")]) == 4
    assert capsys.readouterr().err.endswith("Error: " + said.format("one"))
    result = CliRunner().invoke(cli, ["pipeline", "reconcile", *paths, "--out", str(tmp_path / "two")])
    assert result.exit_code == 4
    assert result.output.endswith("Error: " + said.format("two"))


def test_rules_are_read_from_a_file(spark, tmp_path, capsys):
    write_parquet(tmp_path / "reports" / "a.parquet", of_now([report(1, 1300)]))
    write_parquet(tmp_path / "metrics" / "a.parquet", of_now([metric(1)]))
    rules = tmp_path / "rules.toml"
    places = [word for name in ("reports", "metrics", "out") for word in (f"--{name}", str(tmp_path / name))]
    rules.write_text("[tiers]\nnonsense = 1\n")
    assert reconcile.main([*places, "--config", str(rules)]) == 1
    assert "unknown key tiers.nonsense" in capsys.readouterr().err
    rules.write_text(
        "[tiers]\ntolerance_bp = 5000\nlow_bp = 5000\nmedium_bp = 5000\noverclaim_bp = 5000\n[service]\na = 1\n"
    )
    assert reconcile.main([*places, "--config", str(rules)]) == 0
    assert json.loads(capsys.readouterr().out)["statuses"]["MATCHED"] == 1
