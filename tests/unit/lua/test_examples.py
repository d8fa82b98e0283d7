"""The patterns that people copy do what they say, and the documentation shows the same text."""

from pathlib import Path

import pytest

from fila.core.policy import Placement, Verdict
from fila.lua.hooks import Hooks
from fila.lua.limits import HookLimits

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples" / "lua").glob("*.lua"))
DOCUMENT = (ROOT / "docs" / "lua.md").read_text(encoding="utf-8")


class Example:
    """A script, and everything that goes wrong in it as an error of the test."""

    def __init__(self, name, **config):
        source = (ROOT / "examples" / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        self.hooks = Hooks(source, "queue", HookLimits.of(timeout_ms=1000), config.get)

    def place(self, headers, size=100):
        placement = self.hooks.on_enqueue(headers, size, 0)
        assert self.hooks.enqueue_stats.last_error == ""
        return placement

    def judge(self, attempts, error="boom"):
        verdict = self.hooks.on_failure({}, "id", attempts, error, 0)
        assert self.hooks.failure_stats.last_error == ""
        return verdict


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_documentation_shows_every_example_as_it_is(path):
    assert f"```lua\n{path.read_text(encoding='utf-8')}```" in DOCUMENT
    assert f"examples/lua/{path.name}" in DOCUMENT


def test_every_piece_of_lua_in_the_documentation_is_an_example():
    pieces = [piece.split("```")[0] for piece in DOCUMENT.split("```lua\n")[1:]]
    assert sorted(pieces) == sorted(path.read_text(encoding="utf-8") for path in EXAMPLES)


def test_tenants_share_by_tier():
    example = Example("tenant-fairness", **{"tier.gold": "8", "tier.odd": "many"})
    assert example.place({"tenant_id": "acme", "tier": "gold"}) == Placement("acme", 8)
    assert example.place({"tenant_id": "acme", "tier": "odd"}) == Placement("acme", 1)
    assert example.place({"tenant_id": "acme"}) == Placement("acme", 1)
    assert example.place({}) == Placement()


def test_a_provider_is_throttled_as_a_whole_and_by_region():
    example = Example("provider-throttling")
    both = ("provider:aws", "provider:aws:us-east-1")
    headers = {"tenant_id": "acme", "provider": "aws", "region": "us-east-1"}
    assert example.place(headers) == Placement("acme", throttle_keys=both)
    assert example.place({"provider": "aws"}) == Placement(throttle_keys=("provider:aws",))
    assert example.place({}) == Placement(throttle_keys=("provider:unknown",))


@pytest.mark.parametrize("attempts,expected", [(1, 1000), (2, 2000), (5, 16_000), (7, 64_000)])
def test_retries_wait_twice_as_long_each_time(attempts, expected):
    example = Example("exponential-backoff")
    delays = {example.judge(attempts).delay_ms for _ in range(50)}
    assert expected * 0.8 - 1 <= min(delays) < max(delays) <= expected * 1.2


def test_a_message_that_cannot_succeed_is_given_up():
    example = Example("exponential-backoff")
    assert example.judge(8) == Verdict(dead=True)
    assert example.judge(1, "invalid address") == Verdict(dead=True)


def test_the_kind_of_a_message_decides_how_it_travels():
    example = Example("header-routing")
    assert example.place({"tenant_id": "a", "kind": "interactive"}) == Placement("a", priority=0)
    slow = Placement("a", priority=10, delay_ms=60_000, cost=5)
    assert example.place({"tenant_id": "a", "kind": "export/customers.csv"}) == slow
    for headers in ({}, {"kind": ""}, {"kind": "other"}, {"kind": "///"}):
        assert example.place({"tenant_id": "a", **headers}) == Placement("a", priority=5)


def test_a_request_costs_the_tokens_it_will_use():
    example = Example("llm-token-budget")
    placed = example.place({"tenant_id": "a", "model": "gpt-4o", "max_tokens": "1000"}, 401)
    assert placed == Placement("a", throttle_keys=("llm:gpt-4o",), cost=1101)
    assert example.place({}, 0) == Placement(throttle_keys=("llm:default",), cost=500)
    for odd in ("-5", "1e300", "nan", "many", "1.5", "inf"):
        assert 1 <= example.place({"max_tokens": odd}, 0).cost <= 1_000_000


def test_a_request_waits_as_long_as_the_provider_says():
    example = Example("llm-token-budget")
    assert example.judge(9, "429: retry after 12 seconds") == Verdict(delay_ms=12_000)
    assert example.judge(9, "429: retry after 99999999999999999999 seconds") == Verdict(delay_ms=3_600_000)
    assert example.judge(2) == Verdict(delay_ms=2000)
    assert example.judge(5) == Verdict(dead=True)
