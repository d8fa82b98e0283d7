"""What `fila worker` writes, and that it goes on when that cannot be written."""

import io
import logging
import sys

import pytest

from fila.cli.worker import LiveLog


class Unread(io.StringIO):
    """A pipe whose reader is gone."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def record(**fields):
    return logging.makeLogRecord({"msg": "job dead", "outcome": "dead", **fields})


JOB = {"task": "shop.send", "seconds": 0.5, "attempt": 2}


def test_a_job_is_a_line(capsys):
    LiveLog(verbose=False).handle(record(**JOB, error="ValueError: no"))
    line = capsys.readouterr().err.split(maxsplit=1)[1]
    assert " ".join(line.split()) == "dead shop.send 500 ms - attempt 2 ValueError: no"


@pytest.mark.parametrize("stream", [Unread, closed])
def test_a_log_that_cannot_be_written_harms_nobody(monkeypatch, stream):
    log = LiveLog(verbose=False)
    monkeypatch.setattr(sys, "stderr", stream())
    log.handle(record(**JOB))
    assert log.counts == {"dead": 1}


def test_a_process_may_have_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    log = LiveLog(verbose=False)
    log.handle(record(**JOB))
    assert log.counts == {"dead": 1}


def test_a_record_that_cannot_be_shown_is_told_of_and_harms_nobody(capsys):
    LiveLog(verbose=False).handle(record())
    assert "KeyError" in capsys.readouterr().err
