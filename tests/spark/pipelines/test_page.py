"""What docs/spark.md tells people to type works, in the order in which it tells them."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from fila.cli.main import cli

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_the_first_run_works_as_written(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # commands end their session, and this one is shared
    # Java's working directory is that of its start: the folders are put elsewhere by name.
    page = re.sub(r'\b(data|reconciled)(?=[/\s"])', rf"{tmp_path}/\1", PAGE.read_text())
    space = {}
    done = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        done.append(language)
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), space)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "fila"
            result = CliRunner().invoke(cli, arguments)
            assert result.exit_code == 0, result.output
            if "reconcile" in arguments:
                assert "AFFILIATE_OVERCLAIMED" in result.output
                assert "report.html" in result.output
                again = CliRunner().invoke(cli, arguments)
                assert again.output.startswith("There is no new input")
    assert done == ["sh", "python", "python"]
    assert (tmp_path / "reconciled" / "report.html").exists()


def test_what_stops_a_command_is_one_line(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    arguments = ["--reports", f"{tmp_path}/nowhere", "--metrics", f"{tmp_path}/nowhere", "--out", f"{tmp_path}/out"]
    wrong = CliRunner().invoke(cli, ["pipeline", "reconcile", *arguments])
    assert (wrong.exit_code, wrong.output) == (1, f"Error: no reports: there are no files at {tmp_path}/nowhere\n")
    for choice in ([], ["--journal", "a", "--broker", "localhost:1"]):
        assert CliRunner().invoke(cli, ["pipeline", "fairness", "--out", f"{tmp_path}/out", *choice]).exit_code == 2
