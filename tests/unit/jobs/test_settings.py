"""Settings: what the environment says, what is refused, and what is never shown."""

import subprocess
import sys

import pytest

import fila.jobs
from fila import TLS
from fila.jobs import FilaSettings, InvalidSettings, QueueSettings
from fila.jobs.settings import redacted, variables


def test_the_defaults_are_those_of_the_specification():
    settings = QueueSettings.from_env({})
    assert dict(settings.priorities) == {"high": 0, "normal": 5, "low": 10}
    assert (settings.use_redis, settings.fila) == (False, None)
    assert (settings.redis_ready_key, settings.redis_scheduled_key) == ("fila:jobs:ready", "fila:jobs:scheduled")
    assert settings.redis_health_check_timeout == 2.0


def test_the_environment_is_read_when_asked():
    settings = QueueSettings.from_env(
        {
            "USE_REDIS_QUEUE": "true",
            "REDIS_URL": "rediss://:pw@host:6380/1",
            "REDIS_HEALTH_CHECK_TIMEOUT": "0.5",
            "QUEUE_PRIORITIES": "now=0, later=9",
            "QUEUE_MAX_IN_MEMORY": "7",
            "QUEUE_ON_OUTAGE": "refuse",
        }
    )
    assert settings.use_redis is True
    assert settings.redis_url == "rediss://:pw@host:6380/1"
    assert settings.redis_health_check_timeout == 0.5
    assert dict(settings.priorities) == {"now": 0, "later": 9}
    assert (settings.max_in_memory, settings.on_outage) == (7, "refuse")


def test_the_broker_is_chosen_by_the_environment():
    settings = QueueSettings.from_env(
        {"USE_FILA_QUEUE": "1", "FILA_ADDR": "b:1", "FILA_QUEUE": "q", "FILA_THROTTLE_HEADERS": "platform, region"}
    )
    assert (settings.fila.addr, settings.fila.queue) == ("b:1", "q")
    assert settings.fila.throttle_headers == ("platform", "region")


@pytest.mark.parametrize(
    "variable, text",
    [
        ("USE_REDIS_QUEUE", "perhaps"),
        ("QUEUE_MAX_IN_MEMORY", "many"),
        ("REDIS_HEALTH_CHECK_TIMEOUT", "soon"),
        ("QUEUE_PRIORITIES", "high"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable, text):
    with pytest.raises(InvalidSettings, match=variable):
        QueueSettings.from_env({variable: text})


@pytest.mark.parametrize(
    "wrong",
    [
        {"priorities": {}},
        {"priorities": {"x": 256}},
        {"priorities": {"x": True}},
        {"max_in_memory": 0},
        {"max_depth": -1},
        {"warn_depth": 0},
        {"lease_seconds": 0},
        {"lease_seconds": float("inf")},
        {"redis_health_check_timeout": -1},
        {"on_outage": "panic"},
        {"redis_ready_key": ""},
        {"redis_scheduled_key": "fila:jobs:ready"},
    ],
)
def test_a_value_that_cannot_be_is_named(wrong):
    with pytest.raises(InvalidSettings, match=next(iter(wrong))):
        QueueSettings(**wrong)


def test_settings_do_not_change_with_the_callers_mapping():
    labels = {"a": 1}
    settings = QueueSettings(priorities=labels)
    labels["b"] = 2
    assert dict(settings.priorities) == {"a": 1}


@pytest.mark.parametrize(
    "url, shown",
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:secret@host:1/2", "redis://***@host:1/2"),
        ("rediss://user:sec@ret@host/0?password=more", "rediss://***@host/0?***"),
        ("redis://[broken", "[not a URL]"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert redacted(url) == shown
    assert url not in repr(QueueSettings(redis_url=url))


def test_every_setting_has_a_variable():
    assert "redis_url" in variables()
    assert len(set(variables().values())) == len(variables())


def test_importing_reads_no_environment_and_loads_no_client():
    code = (
        "import os, sys\n"
        "class Deaf(dict):\n"
        "    def get(self, name, default=None): raise AssertionError(name)\n"
        "import logging, asyncio, importlib.resources, json, uuid\n"
        "os.environ = Deaf()\n"
        "import fila.jobs\n"
        "assert not {'redis', 'grpc'} & set(sys.modules), 'loaded too early'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_url_says_where_jobs_are_kept():
    assert QueueSettings.at("memory://", {}) == QueueSettings()
    assert QueueSettings.at("fila://broker:7000", {}).fila == FilaSettings(addr="broker:7000")
    assert QueueSettings.at("fila://broker", {}).fila == FilaSettings(addr="broker:5555")
    assert QueueSettings.at("fila://[::1]:7000/mail", {}).fila == FilaSettings(addr="[::1]:7000", queue="mail")
    assert QueueSettings.at("filas://broker/mail", {}).fila == FilaSettings(addr="broker:5555", queue="mail", tls=TLS())
    trusted = QueueSettings.at("filas://broker", {"FILA_TLS_CA": "ca.pem", "FILA_TLS": "false", "FILA_TLS_KEY": ""})
    assert trusted.fila.tls == TLS()
    assert QueueSettings.at("filas://broker", {"FILA_TLS_CA": "ca.pem"}).fila.tls == TLS(ca="ca.pem")
    for url in ("redis://host:6379/1", "rediss://user:secret@host", "unix:///run/redis.sock"):
        settings = QueueSettings.at(url, {})
        assert (settings.use_redis, settings.redis_url, settings.fila) == (True, url, None)


def test_a_url_goes_before_what_the_environment_chooses_and_leaves_the_rest_to_it():
    environ = {"USE_REDIS_QUEUE": "true", "REDIS_URL": "redis://elsewhere", "FILA_ADDR": "elsewhere:1"}
    environ |= {"USE_FILA_QUEUE": "true", "QUEUE_LEASE_SECONDS": "7", "FILA_MAX_IN_FLIGHT": "3"}
    settings = QueueSettings.at("fila://here:5555", environ)
    assert (settings.use_redis, settings.lease_seconds) == (False, 7)
    assert settings.fila == FilaSettings(addr="here:5555", max_in_flight=3)
    memory = QueueSettings.at("memory://", environ)
    assert (memory.use_redis, memory.fila, memory.lease_seconds) == (False, None, 7)
    assert QueueSettings.from_env(environ | {"FILA_JOBS_URL": "fila://here:5555"}) == settings


@pytest.mark.parametrize("url", ["", "memory", "localhost:5555", "amqp://host", "fila://", "fila://user:secret@host"])
def test_a_url_that_cannot_be_is_refused_without_repeating_it(url):
    with pytest.raises(InvalidSettings, match="fila://host:port") as refused:
        QueueSettings.at(url, {})
    assert "secret" not in str(refused.value)


def test_one_name_is_not_taken_for_its_letters():
    with pytest.raises(InvalidSettings, match="throttle_headers"):
        FilaSettings(throttle_headers="platform")


def test_settings_of_the_environment_have_their_name_of_the_specification(monkeypatch):
    monkeypatch.setenv("QUEUE_WARN_DEPTH", "7")
    assert QueueSettings.from_env() == fila.jobs.QUEUE_SETTINGS
    assert fila.jobs.QUEUE_SETTINGS.warn_depth == 7
