"""The service's file: what it may say, and how it is refused."""

import re
from pathlib import Path

import pytest

from fila import jobs
from fila.reconcile.config import Config
from fila.reconcile.domain.settings import DEFAULTS
from fila.settings import SettingsError

DOC = Path(__file__).parents[3] / "docs" / "reconcile.md"


def load(tmp_path, text):
    file = tmp_path / "reconcile.toml"
    file.write_text(text)
    return Config.load(file)


def test_without_a_file_everything_has_its_default():
    config = Config.load(None)
    assert config.rules == DEFAULTS
    assert (config.store.url, config.queue.url, config.queue.shared) == ("sqlite:///reconcile.db", "memory", False)


def test_every_section_is_read(tmp_path):
    config = load(
        tmp_path,
        """
        [store]
        url = "postgresql://fila@db/fila"
        [queue]
        url = "redis://cache:6379/1"
        lease_seconds = 5
        [worker]
        concurrency = 9
        [breaker]
        failure_threshold = 2
        [api]
        max_batch = 7
        [tiers]
        tolerance_bp = 100
        [platforms.clipshare]
        base_url = "https://api.example/"
        fields = {views = "stats.plays"}
        """,
    )
    assert (config.rules.tiers.tolerance_bp, config.api.max_batch, config.breaker.failure_threshold) == (100, 7, 2)
    assert config.platforms[0].fields["views"] == "stats.plays"
    queue = config.queue.queue_settings(config.worker.concurrency)
    assert (queue.use_redis, queue.redis_url, queue.lease_seconds) == (True, "redis://cache:6379/1", 5.0)


def test_a_broker_is_named_by_its_address_and_queue():
    config = Config().override(store_url=None, queue_url="fila://broker:5555/claims", concurrency=3)
    fila = config.queue.queue_settings(config.worker.concurrency).fila
    assert (fila.addr, fila.queue, fila.max_in_flight) == ("broker:5555", "claims", 3)
    assert fila.throttle_headers == ("platform",)


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[stor]\n", "unknown section 'stor'"),
        ("[store]\npath = 1", r"unknown key store\.path"),
        ("[store]\nurl = 1", r"store\.url: expected text"),
        ("[worker]\nconcurrency = 0", "expected a whole number from 1 to"),
        ("[worker]\nconcurrency = 1.5", "expected a whole number from 1 to"),
        ("[worker]\npoll_timeout = -1", "expected a number of seconds, more than 0"),
        ("[worker]\npoll_timeout = inf", "expected a number of seconds, more than 0"),
        (f"[worker]\nconcurrency = 1{'0' * 400}", "expected a whole number from 1 to"),
        (f"[worker]\npoll_timeout = 1{'0' * 400}", "expected a number of seconds, more than 0, at most"),
        ("[store]\nrequeue_after_seconds = 1e300", "expected a number of seconds, more than 0, at most"),
        (f"[worker]\npoll_timeout = 1{'0' * 5_000}", "digits"),
        (f"[worker]\npoll_timeout = 0x1{'0' * 5_000}", "digits"),
        (f"[api]\nmax_batch = 1{'0' * 400}", "max_batch = 1"),
        ("store = 1", "expected a section"),
        ("platforms = 1", "expected sections"),
        ("[platforms.x]\n", "base_url is missing"),
        ("[api]\nmax_batch = 0", "max_batch = 0: expected a whole number"),
        ("[tiers]\nlow_bp = 1", "tolerance_bp <= low_bp"),
        ("nonsense", "reconcile.toml"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_name_of_the_file(tmp_path, text, complaint):
    with pytest.raises(SettingsError, match=complaint) as refused:
        load(tmp_path, text)
    assert "reconcile.toml" in str(refused.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(SettingsError, match="cannot read"):
        Config.load(tmp_path / "none.toml")


@pytest.mark.parametrize("url", ["kafka://x", "http://x", "", "redis"])
def test_a_queue_that_does_not_exist_is_refused(url):
    with pytest.raises(SettingsError, match=r"queue\.url"):
        Config().override(store_url=None, queue_url=url, concurrency=None).queue.queue_settings(1)


def test_the_keys_in_redis_are_those_of_the_specification_and_can_be_set(tmp_path):
    queue = Config().override(store_url=None, queue_url="redis://x", concurrency=None).queue.queue_settings(1)
    assert (queue.redis_ready_key, queue.redis_scheduled_key) == ("affiliate:ready_queue", "affiliate:scheduled_jobs")
    assert queue.redis_health_check_timeout == 2.0
    text = """[queue]
    url = "redis://x"
    redis_ready_key = "a"
    redis_scheduled_key = "b"
    redis_health_check_timeout = 0.5
    max_in_memory = 3
    warn_depth = 2
    """
    set_by_file = load(tmp_path, text).queue.queue_settings(1)
    assert (set_by_file.redis_ready_key, set_by_file.redis_scheduled_key) == ("a", "b")
    assert (set_by_file.redis_health_check_timeout, set_by_file.max_in_memory, set_by_file.warn_depth) == (0.5, 3, 2)


def test_jobs_know_nothing_of_reconciliation():
    """It is one application of jobs among others."""
    words = re.compile(r"affiliate|report_id|fila\.reconcile", re.IGNORECASE)
    sources = [path for pattern in ("*.py", "*.lua") for path in Path(jobs.__file__).parent.rglob(pattern)]
    assert len(sources) > 20
    assert [path.name for path in sources if words.search(path.read_text())] == []


def test_passwords_do_not_show():
    config = Config().override(store_url="postgresql://a:hunter2@b/c", queue_url="redis://:hunter2@x", concurrency=None)
    assert "hunter2" not in repr(config)


def test_the_documented_defaults_are_the_defaults():
    text = DOC.read_text()
    api, worker, breaker = Config().api, Config().worker, Config().breaker
    waits = (worker.poll_timeout, worker.grace_seconds, worker.schedule_every_seconds)
    rows = [
        (api.affiliate_per_minute, api.affiliate_burst),
        (f"{api.queue_mark:,}",),
        (f"{api.max_batch:,}", "1 MiB"),
        (worker.concurrency, *(f"{each:g}" for each in waits), worker.max_attempts),
        (
            breaker.failure_threshold,
            breaker.rate_limit_threshold,
            f"{breaker.open_cooldown_seconds:g}",
            breaker.half_open_probe_count,
        ),
    ]
    for row in rows:
        assert f"| {', '.join(map(str, row))} |" in text
    trust = DEFAULTS.trust
    steps = [trust.overclaimed_bp, trust.high_bp, trust.medium_bp, trust.low_bp, trust.matched_bp]
    assert [float(each) for each in re.findall(r"\| ([+-]0\.\d\d) \|", text)] == [
        each / 10_000 for each in (steps[0], *steps)
    ]
