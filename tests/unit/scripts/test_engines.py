"""Installing the engines that tests run."""

import shutil
import sys

import pytest

from scripts import engines, go_tool


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)


@pytest.mark.parametrize("name, text", [("kafka", "there is no `mvn` here"), ("nats", "there is no `go` here")])
def test_what_cannot_be_had_is_one_line(name, text, nothing_installed, capsys):
    assert engines.main([name]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("names", [[], ["rabbitmq"]])
def test_engines_are_named(names, capsys):
    assert engines.main(names) == 2
    assert "say some of nats, kafka" in capsys.readouterr().err


def test_a_program_of_a_later_major_version_has_the_name_before_it(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(go_tool, "_install", lambda _package, folder: (folder / "nats-server").touch())
    assert go_tool.build("github.com/nats-io/nats-server/v2", "v2.15.2").name == "nats-server"
