"""What users entrust to the SDK, the CLI and jobs is in no log, warning or error, whatever level any logger has.

Applications may set the root logger to DEBUG, which turns on every library below them as well.
"""

import io
import logging
import os
import subprocess
import sys
import traceback
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila import Client, FilaError
from fila.jobs import App, FilaSettings, InvalidSettings, QueueSettings
from fila.jobs.errors import JobsError
from fila.testing import ServerProcess
from tests.support.secrets import MARK, odd, secrets

levels = st.sampled_from([logging.NOTSET, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("plain"), config='[log]\nlevel = "debug"\n') as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("q", max_attempts=1)
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a key, which few of the callers have."""
    with ServerProcess(tmp_path_factory.mktemp("guarded"), config='[log]\nlevel = "debug"\n') as server:
        with Client(server.addr, timeout=30) as client:
            client.auth.create_key("root", ["admin"])
        yield server


@contextmanager
def everything_said(level):
    """A stream with all that is logged, warned of or raised inside."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    before = [one.level for one in loggers]
    logging.captureWarnings(capture=True)
    for one in loggers:
        one.setLevel(level)
    loggers[0].addHandler(handler)
    try:
        yield stream
    finally:
        loggers[0].removeHandler(handler)
        logging.captureWarnings(capture=False)
        for one, old in zip(loggers, before, strict=True):
            one.setLevel(old)


def enqueue(client, secret, junk):
    client.enqueue("q", {"name": secret}, secret.encode())
    client.enqueue("nowhere", {"name": secret, secret: junk}, secret.encode())


def enqueue_many(client, secret, junk):
    client.enqueue_many("nowhere", [secret.encode(), junk.encode()])


def fail(client, secret, junk):
    client.enqueue("q", {"name": secret}, secret.encode())
    with client.consume("q", max_in_flight=1) as messages:
        message = next(messages)
        repr(message)
        message.nack(secret + junk)
    message.ack()


def configure(client, secret, junk):
    client.set_config("app.key", secret + junk)
    client.set_config("throttle.x", secret)


def hook(client, secret, junk):
    client.create_queue("hooked", script=f'error("{secret}")')


def dedup(client, secret, junk):
    client.enqueue("q", payload=b"x", dedup_key=secret + junk)
    client.enqueue("q", payload=secret)


OPERATIONS = [enqueue, enqueue_many, fail, configure, hook, dedup]


@settings(max_examples=15)
@given(secret=secrets, junk=odd, level=levels, operations=st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4))
def test_nothing_that_is_sent_is_logged_at_any_level(plain, secret, junk, level, operations):
    with everything_said(level) as said, Client(plain.addr, timeout=30) as client:
        for operation in operations:
            try:
                operation(client, secret, junk)
            except FilaError:
                if operation not in (hook, configure):  # what a script or a setting is refused for is its author's
                    said.write(traceback.format_exc(chain=True))
    assert MARK not in said.getvalue()
    assert MARK not in plain.log


@settings(max_examples=40)
@given(secret=secrets, before=odd, behind=odd, level=levels)
def test_no_key_is_logged_or_in_an_error(guarded, tmp_path_factory, secret, before, behind, level):
    key = before + secret + behind
    file = tmp_path_factory.mktemp("key") / "key"
    file.write_text(key)
    with everything_said(level) as said:
        for options in ({"api_key": key}, {"api_key_file": file}):
            try:
                # Failed logins are answered later and later: what is refused is not waited for.
                with Client(guarded.addr, timeout=0.5, **options) as client:
                    said.write(repr(client) + repr(vars(client)))
                    client.enqueue("q", payload=b"x")
            except (FilaError, ValueError):
                said.write(traceback.format_exc(chain=True))
    assert MARK not in said.getvalue()
    assert MARK not in guarded.log


@settings(max_examples=20)
@given(secret=secrets, level=levels, scheme=st.sampled_from(["redis", "rediss", "fila", "filas", "unix", "amqp"]))
def test_no_password_of_an_address_is_logged_or_in_an_error(secret, level, scheme):
    with everything_said(level) as said:
        try:
            app = App(f"{scheme}://user:{secret}@127.0.0.1:1/0?password={secret}")
            said.write(repr(app))
            task = app.task(lambda value: value, name="t")
            task.enqueue(secret)
        except (JobsError, FilaError, OSError):
            said.write(traceback.format_exc(chain=True))
        with suppress(InvalidSettings):
            said.write(repr(QueueSettings(use_redis=True, redis_url=f"redis://:{secret}@host")))
            said.write(repr(FilaSettings(addr=f"user:{secret}@127.0.0.1:1", queue="q")))
    assert MARK not in said.getvalue()


@pytest.mark.parametrize("arguments", [["queue", "list"], ["enqueue", "q", "x"], ["auth", "whoami"], ["doctor"]])
def test_the_command_line_never_shows_its_key(guarded, arguments):
    for key in (f"{MARK}secret", f"fila_{MARK}_{MARK}secret", f"{MARK}\x1b[31m"):
        environ = {**os.environ, "FILA_API_KEY": key, "PYTHONLOGLEVEL": "DEBUG", "PYTHONASYNCIODEBUG": "1"}
        made = subprocess.run(
            [sys.executable, "-m", "fila.cli.main", "--addr", guarded.addr, *arguments],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert made.returncode
        assert MARK not in made.stdout + made.stderr
