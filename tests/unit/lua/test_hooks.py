"""What scripts see, what they may answer, and what is counted."""

import gc
import weakref
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.config import LimitsConfig, LuaConfig
from fila.core.errors import InvalidArgument
from fila.core.policy import MAX_COST, MAX_PRIORITY, MAX_THROTTLE_KEYS, MAX_WEIGHT, Placement, Verdict
from fila.lua.hooks import BUCKETS_US, MAX_ERROR, DryRun, Hooks
from fila.lua.limits import HookLimits
from fila.lua.runtime import COMPILE_MS, HookFailed, ScriptRuntime

MS = 1_000_000
LIMITS = HookLimits.of()


def hooks(source, limits=LIMITS, config=None, **options):
    return Hooks(source, "orders", limits, (config or {}).get, **options)


def on_enqueue(body, headers=None, size=7, **options):
    made = hooks(f"function on_enqueue(msg) {body} end", **options)
    answer = made.on_enqueue(headers or {}, size, 0)
    assert made.enqueue_stats.last_error == ""
    return answer


def on_failure(body, headers=None, **options):
    made = hooks(f"function on_failure(msg, err) {body} end", **options)
    answer = made.on_failure(headers or {}, "id-1", 3, "boom", 0)
    assert made.failure_stats.last_error == ""
    return answer


def refusal(source, **options):
    with pytest.raises(InvalidArgument) as caught:
        hooks(source, **options)
    return str(caught.value)


class TestRefusedScripts:
    def test_a_syntax_error_is_refused_with_line_and_reason(self):
        assert "script:3: 'end' expected" in refusal("function on_enqueue(msg)\n return {}\n")

    def test_an_error_while_loading_is_refused_with_line_and_reason(self):
        assert "script:2: boom" in refusal("function on_enqueue(msg) end\nerror('boom')")

    @pytest.mark.parametrize("source", ["", "x = 1", "local function on_enqueue() end"])
    def test_a_script_without_hooks_is_refused(self, source):
        assert "neither on_enqueue nor on_failure" in refusal(source)

    def test_a_hook_that_is_no_function_is_refused(self):
        assert "on_enqueue must be a function, not a boolean" in refusal("on_enqueue = false")
        assert "on_failure must be a function, not a number" in refusal("on_failure = 1")

    def test_an_endless_load_is_ended(self):
        assert "script:2: the call exceeded its time limit of 10 ms" in refusal(
            "function on_enqueue() end\nwhile true do end"
        )

    def test_a_greedy_load_is_ended(self):
        greedy = "local t = {} for i = 1, 9 do t[i] = ('x'):rep(200000) .. i end function on_enqueue() end"
        assert "the script exceeded its memory limit of 1048576 bytes" in refusal(greedy)

    def test_a_script_that_keeps_too_much_is_refused(self):
        keeping = "keep = {} for i = 1, 9 do keep[i] = ('x'):rep(120000) .. i end function on_enqueue() end"
        assert "memory limit of 1048576 bytes" in refusal(keeping)

    def test_a_script_that_takes_too_long_to_compile_is_refused(self):
        limits = HookLimits.of(LuaConfig(max_script_bytes=256 * 1024))
        endless = "local x = " + "a and " * 43_000 + "a"
        assert f"compiling it exceeded the time limit of {COMPILE_MS} ms" in refusal(endless, limits=limits)

    def test_bytecode_is_refused(self):
        assert "binary" in refusal("\x1bLua")

    def test_a_script_that_is_too_large_is_refused(self):
        assert "65537 bytes, 65536 are allowed" in refusal("-" * 65537)

    def test_text_that_cannot_be_encoded_is_refused(self):
        assert "not valid Unicode text" in refusal("-- \ud800")


class TestOnEnqueue:
    def test_an_empty_answer_is_the_default(self):
        assert on_enqueue("return {}") == Placement()

    def test_every_field_is_taken(self):
        answer = "{fairness_key='k', weight=2, throttle_keys={'b','a','b'}, cost=3, priority=4, delay_ms=5}"
        assert on_enqueue(f"return {answer}") == Placement("k", 2, ("a", "b"), 3, 4, 5)

    def test_whole_floats_are_whole_numbers(self):
        placement = on_enqueue("return {weight=2.0, cost=3.0, priority=4.0, delay_ms=2^10}")
        assert placement == Placement(weight=2, cost=3, priority=4, delay_ms=1024)
        assert all(type(number) is int for number in placement[1:2] + placement[3:])

    def test_the_bounds_themselves_are_allowed(self):
        keys = ",".join(f"'{n}'" for n in range(MAX_THROTTLE_KEYS))
        most = on_enqueue(
            f"return {{fairness_key=('x'):rep(255), weight={MAX_WEIGHT}, cost={MAX_COST}, priority={MAX_PRIORITY},"
            f"delay_ms={LIMITS.max_delay_ms}, throttle_keys={{{keys}}}}}"
        )
        assert most[0] == "x" * 255
        assert len(most.throttle_keys) == MAX_THROTTLE_KEYS
        assert most[3:] == (MAX_COST, MAX_PRIORITY, LIMITS.max_delay_ms)
        assert on_enqueue("return {weight=1, cost=1, priority=0, delay_ms=0}") == Placement(priority=0, delay_ms=0)

    def test_an_empty_key_is_the_default_key(self):
        assert on_enqueue("return {fairness_key=''}") == Placement()

    def test_limits_of_keys_and_delays_are_the_servers(self):
        limits = HookLimits.of(limits=LimitsConfig(max_key_bytes=3, max_delay_ms=9))
        assert on_enqueue("return {fairness_key='abc', delay_ms=9}", limits=limits) == Placement("abc", delay_ms=9)
        for answer in ("fairness_key='abcd'", "throttle_keys={'abcd'}", "delay_ms=10"):
            made = hooks(f"function on_enqueue() return {{{answer}}} end", limits)
            assert made.on_enqueue({}, 0, 0) == Placement()
            assert made.enqueue_stats.failures["bad_return"] == 1

    def test_it_sees_payload_size_and_queue(self):
        assert on_enqueue("return {fairness_key=msg.queue, cost=msg.payload_size}") == Placement("orders", cost=7)

    @given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=12))
    @settings(max_examples=50)
    def test_it_sees_every_header(self, headers):
        expected = sum(len(name.encode()) + 2 * len(value.encode()) for name, value in headers.items())
        body = "local n = 0 for name, value in pairs(msg.headers) do n = n + #name + #value + #msg.headers[name] end"
        assert on_enqueue(f"{body} return {{cost=n + 1}}", headers).cost == expected + 1

    def test_headers_of_an_earlier_message_stay_what_they_were(self):
        made = hooks("function on_enqueue(msg) old = old or msg.headers return {fairness_key=old.tenant} end")
        assert [made.on_enqueue({"tenant": t}, 0, 0).fairness_key for t in "ab"] == ["a", "a"]

    def test_header_names_that_mean_something_to_lua_are_headers(self):
        assert on_enqueue("return {fairness_key=msg.headers.__index}", {"__index": "x"}).fairness_key == "x"

    def test_large_headers_do_not_count_as_the_scripts_memory(self):
        headers = {f"h{n}": "ü" * 100_000 for n in range(20)}
        assert on_enqueue("return {cost=#msg.headers.h7}", headers) == Placement(cost=200_000)

    def test_large_headers_leave_room_after_reading_configuration(self):
        body = "local v = fila.get('k') return {fairness_key=v .. v, cost=#msg.headers.h}"
        headers = {"h": "x" * 3_000_000}
        assert on_enqueue(body, headers, config={"k": "ab"}) == Placement("abab", cost=3_000_000)

    def test_a_script_without_the_hook_gives_the_default_and_counts_nothing(self):
        made = hooks("function on_failure() return {} end")
        assert made.on_enqueue({}, 1, 0) == Placement()
        assert not made.has_on_enqueue
        assert made.enqueue_stats.calls == 0


class TestOnFailure:
    def test_an_empty_answer_is_a_retry(self):
        assert on_failure("return {}") == Verdict()

    def test_a_retry_may_wait(self):
        assert on_failure("return {action='retry', delay_ms=2^msg.attempts}") == Verdict(delay_ms=8)

    def test_a_message_may_be_given_up(self):
        assert on_failure("return {action='dlq'}") == Verdict(dead=True)

    def test_it_sees_everything(self):
        body = (
            "assert(msg.id=='id-1' and msg.attempts==3 and msg.error=='boom' and err=='boom' and msg.queue=='orders')"
        )
        assert on_failure(f"{body} return {{action=msg.headers.a}}", {"a": "dlq"}) == Verdict(dead=True)

    @pytest.mark.parametrize(
        "answer", ["", "1", "{action='drop'}", "{action=1}", "{delay_ms=-1}", "{delay_ms='1'}", "{delay_ms=0/0}"]
    )
    def test_a_wrong_answer_is_a_retry_and_counted(self, answer):
        made = hooks(f"function on_failure(msg) return {answer} end")
        assert made.on_failure({}, "id", 1, "boom", 0) == Verdict()
        assert made.failure_stats.failures["bad_return"] == 1

    def test_a_loop_is_a_retry_and_counted(self):
        made = hooks("function on_failure(msg) while true do end end")
        assert made.on_failure({}, "id", 1, "boom", 0) == Verdict()
        assert made.failure_stats.failures["timeout"] == 1

    def test_text_that_cannot_be_encoded_is_an_error(self):
        made = hooks("function on_failure(msg) return {action='dlq'} end")
        assert made.on_failure({}, "id", 1, "\ud800", 0) == Verdict()
        assert made.failure_stats.failures["error"] == 1
        assert made.on_failure({}, "id", 1, "", 0) == Verdict(dead=True)


class TestConfiguration:
    def test_a_script_reads_runtime_configuration_as_it_is_now(self):
        config = {"k": "1"}
        made = hooks("function on_enqueue() return {fairness_key=fila.get('k')} end", config=config)
        assert made.on_enqueue({}, 0, 0) == Placement("1")
        config["k"] = "2"
        assert made.on_enqueue({}, 0, 0) == Placement("2")
        del config["k"]
        assert made.on_enqueue({}, 0, 0) == Placement()

    def test_nothing_but_text_reaches_a_script(self):
        assert on_enqueue("return {fairness_key=fila.get('k')}", config={"k": object()}) == Placement()

    def test_a_reader_that_fails_is_an_error_of_the_call(self):
        def broken(key):
            raise OSError("no")

        made = Hooks("function on_enqueue() return {fairness_key=fila.get('k')} end", "q", LIMITS, broken)
        for _ in range(2):
            assert made.on_enqueue({}, 0, 0) == Placement()
        assert made.enqueue_stats.failures["error"] == 2
        assert "the configuration cannot be read" in made.enqueue_stats.last_error

    def test_a_failing_reader_is_nothing_that_a_script_can_touch(self):
        def broken(key):
            raise OSError("no")

        source = "function on_enqueue() local _, e = pcall(fila.get, 'k') return {fairness_key=type(e)} end"
        assert Hooks(source, "q", LIMITS, broken).on_enqueue({}, 0, 0) == Placement("string")

    def test_a_value_may_be_larger_than_the_memory_that_is_left(self):
        made = hooks(
            "function on_enqueue(msg) if msg.headers.big then return {cost=#fila.get('k')} end return {cost=2} end",
            config={"k": "x" * 5_000_000},
        )
        made.on_enqueue({"big": "1"}, 0, 0)
        assert made.on_enqueue({}, 0, 0) == Placement(cost=2)


class TestMemoryBetweenCalls:
    def test_what_a_script_keeps_is_its_own_and_stays(self):
        made = hooks("local n = 0 function on_enqueue() n = n + 1 return {cost=n} end")
        assert [made.on_enqueue({}, 0, 0).cost for _ in range(3)] == [1, 2, 3]

    def test_a_script_that_leaks_starts_afresh_when_it_has_used_up_its_memory(self):
        made = hooks(
            "keep = {} function on_enqueue() keep[#keep + 1] = ('x'):rep(5000) .. #keep return {cost=#keep} end"
        )
        costs = [made.on_enqueue({}, 0, 0).cost for _ in range(600)]
        failures = made.enqueue_stats.failures
        assert 1 <= failures["memory"] == sum(failures.values()) < 10
        assert costs.count(1) >= 2 * failures["memory"]  # the default, then a fresh start
        assert max(costs) > 5

    def test_arguments_find_room_however_full_the_script_is(self):
        """lupa would abort the process if it could not push an argument."""
        fill = """
        for _, n in ipairs{50000, 1000, 10, 1} do
          while size + n < limit do
            size, keep[#keep + 1] = size + n + 60, ('x'):rep(n) .. #keep
          end
        end
        """
        for limit in range(900_000, 1_100_000, 20_000):
            made = hooks(
                f"keep, size, limit = {{}}, 0, {limit} function on_enqueue(msg) {fill} return {{}} end",
                HookLimits.of(timeout_ms=1000),
            )
            for length in (10, 1000, 100_000, 1_000_000):
                assert made.on_enqueue({"a": "x" * length, "b": "y" * length}, 0, 0) == Placement()

    def test_the_memory_of_a_script_goes_with_it(self):
        made = hooks("function on_enqueue(msg) fila.get('k') while true do end end")
        before = weakref.ref(made._runtime)
        gc.disable()
        try:
            made.on_enqueue({}, 0, 0)
            assert before() is None
        finally:
            gc.enable()


class TestCircuitBreaker:
    FRAGILE = """
    function on_enqueue(msg) if msg.headers.bad then error('bad') end return {fairness_key='good'} end
    function on_failure(msg) if msg.headers.bad then error('bad') end return {action='dlq'} end
    """

    def made(self, **config):
        self.opened = []
        limits = HookLimits.of(LuaConfig(**config))
        return hooks(self.FRAGILE, limits, on_open=lambda *event: self.opened.append(event))

    @pytest.mark.parametrize("threshold", [1, 2, 3, 7])
    def test_it_opens_at_exactly_the_threshold(self, threshold):
        made = self.made(breaker_failures=threshold)
        for n in range(threshold):
            assert not made.bypassed_until("on_enqueue", 0), n
            assert self.opened == []
            made.on_enqueue({"bad": "1"}, 0, 0)
        assert made.bypassed_until("on_enqueue", 0)
        assert self.opened == [("orders", "on_enqueue", "error", "script:2: bad")]
        assert made.on_enqueue({}, 0, 0) == Placement()
        stats = made.enqueue_stats
        assert (stats.calls, stats.bypassed, stats.opened, stats.failures["error"]) == (threshold, 1, 1, threshold)

    def test_a_success_starts_the_count_again(self):
        made = self.made()
        for bad in (1, 1, 0, 1, 1):
            made.on_enqueue({"bad": "1"} if bad else {}, 0, 0)
        assert not made.bypassed_until("on_enqueue", 0)
        made.on_enqueue({"bad": "1"}, 0, 0)
        assert made.bypassed_until("on_enqueue", 0)

    def test_it_stays_open_for_the_cooldown_and_then_tries_again(self):
        made = self.made(breaker_cooldown_ms=500)
        now = 1_000 * MS
        for _ in range(3):
            made.on_enqueue({"bad": "1"}, 0, now)
        assert made.on_enqueue({}, 0, now + 500 * MS - 1) == Placement()
        assert made.on_enqueue({}, 0, now + 500 * MS) == Placement("good")
        assert not made.bypassed_until("on_enqueue", now + 500 * MS)
        made.on_enqueue({"bad": "1"}, 0, now + 501 * MS)
        assert not made.bypassed_until("on_enqueue", now + 501 * MS)

    def test_a_failure_after_the_cooldown_opens_it_again_at_once(self):
        made = self.made(breaker_cooldown_ms=500)
        for _ in range(3):
            made.on_enqueue({"bad": "1"}, 0, 0)
        made.on_enqueue({"bad": "1"}, 0, 500 * MS)
        assert made.on_enqueue({}, 0, 1000 * MS - 1) == Placement()
        assert made.on_enqueue({}, 0, 1000 * MS) == Placement("good")
        assert len(self.opened) == made.enqueue_stats.opened == 2

    def test_each_hook_has_its_own(self):
        made = self.made()
        for _ in range(3):
            made.on_failure({"bad": "1"}, "id", 1, "", 0)
            assert made.on_enqueue({}, 0, 0) == Placement("good")
        assert made.bypassed_until("on_failure", 0)
        assert not made.bypassed_until("on_enqueue", 0)
        assert made.on_failure({}, "id", 1, "", 0) == Verdict()
        assert made.on_failure({}, "id", 1, "", 10_000 * MS) == Verdict(dead=True)


class TestCounting:
    def test_durations_fall_into_buckets(self):
        times = iter([0, 1_999, 0, 2_000, 0, 60 * MS])
        made = hooks("function on_enqueue() return {} end", clock_ns=lambda: next(times))
        for _ in range(3):
            made.on_enqueue({}, 0, 0)
        assert made.enqueue_stats.durations == [1, 1, *[0] * (len(BUCKETS_US) - 2), 1]
        assert made.enqueue_stats.duration_us == 1 + 2 + 60_000

    def test_the_last_error_is_bounded(self):
        made = hooks("function on_enqueue() error(('x'):rep(100000)) end")
        made.on_enqueue({}, 0, 0)
        assert 300 < len(made.enqueue_stats.last_error) <= MAX_ERROR

    def test_an_error_says_the_line_of_the_script_even_inside_a_library(self):
        made = hooks("function on_enqueue(msg)\n\n local x = ('a'):find('[a')\nend")
        made.on_enqueue({}, 0, 0)
        assert made.enqueue_stats.last_error == "script:3: malformed pattern (missing ']')"


class TestDryRun:
    SOURCE = """
    function on_enqueue(msg) if msg.headers.loop then while true do end end
    return {fairness_key=msg.headers.tenant} end
    """

    def test_it_shows_the_decision_or_the_error_with_its_line(self):
        trial = DryRun(self.SOURCE, "q", LIMITS, lambda _: None)
        assert trial.on_enqueue({"tenant": "a"}, 1).decision == Placement("a")
        for _ in range(5):
            failed = trial.on_enqueue({"loop": "1"}, 1)
            assert (failed.decision, failed.error) == (
                Placement(),
                "script:2: the call exceeded its time limit of 10 ms",
            )
        assert trial.on_enqueue({"tenant": "b"}, 1).decision == Placement("b")
        assert "no on_failure" in trial.on_failure({}, "id", 1, "").error

    def test_a_verdict_can_be_tried_as_well(self):
        trial = DryRun("function on_failure(m, e) return {action=e} end", "q", LIMITS, lambda _: None)
        assert trial.on_failure({}, "id", 1, "dlq").decision == Verdict(dead=True)
        assert "action must be" in trial.on_failure({}, "id", 1, "x").error
        assert "no on_enqueue" in trial.on_enqueue({}, 1).error

    def test_a_script_that_cannot_be_used_is_refused(self):
        with pytest.raises(InvalidArgument):
            DryRun("nonsense", "q", LIMITS, lambda _: None)


class TestLimits:
    def test_a_queue_may_have_its_own(self):
        limits = HookLimits.of(timeout_ms=50, memory_bytes=1 << 21)
        assert (limits.timeout_ms, limits.memory_bytes) == (50, 1 << 21)
        assert "the call exceeded its time limit of 50 ms" in refusal("while true do end", limits=limits)

    @pytest.mark.parametrize(
        "own", [{"timeout_ms": 0}, {"timeout_ms": 1001}, {"memory_bytes": 1}, {"memory_bytes": 1 << 30}]
    )
    def test_what_is_out_of_range_is_refused_by_name(self, own):
        with pytest.raises(InvalidArgument, match=f"^{next(iter(own))} = .*expected a whole number from"):
            HookLimits.of(**own)


LUA_VALUES = st.recursive(
    st.sampled_from(
        ["nil", "true", "false", "0/0", "1/0", "-1/0", "''", "'a'", "'\\xff'", "'retry'", "'dlq'", "print", "tostring",
         "string", "msg", "msg.headers", "fila", "math.maxinteger", "math.mininteger", "-0.0", "2^53", "('x'):rep(300)"]
    )
    | st.integers(-3, 2000).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr),
    lambda values: st.lists(values, max_size=4).map(lambda each: "{" + ", ".join(each) + "}")
    | st.dictionaries(
        st.sampled_from(["fairness_key", "weight", "throttle_keys", "cost", "priority", "delay_ms", "action"]),
        values,
        max_size=4,
    ).map(lambda each: "{" + ", ".join(f"{name} = {value}" for name, value in each.items()) + "}"),
    max_leaves=12,
)  # fmt: skip


@given(LUA_VALUES)
@settings(max_examples=150, deadline=None)
def test_whatever_a_script_returns_the_answer_is_valid(value):
    made = hooks(f"function on_enqueue(msg) return {value} end function on_failure(msg) return {value} end")
    placement = made.on_enqueue({"a": "b"}, 1, 0)
    assert type(placement) is Placement
    assert isinstance(placement.fairness_key, str)
    assert 1 <= len(placement.fairness_key.encode()) <= 255
    assert 1 <= placement.weight <= MAX_WEIGHT
    assert 1 <= placement.cost <= MAX_COST
    assert placement.priority is None or 0 <= placement.priority <= MAX_PRIORITY
    assert placement.delay_ms is None or 0 <= placement.delay_ms <= LIMITS.max_delay_ms
    assert list(placement.throttle_keys) == sorted(set(placement.throttle_keys))
    assert all(type(number) is int for number in (placement.weight, placement.cost))
    verdict = made.on_failure({}, "id", 1, "boom", 0)
    assert type(verdict) is Verdict
    assert verdict.dead in {True, False}
    assert verdict.delay_ms is None or 0 <= verdict.delay_ms <= LIMITS.max_delay_ms


class TestASlowHook:
    """Within its limit on every call. What it costs the broker is bounded by a budget, not by another decision."""

    SLOW = "function on_enqueue(msg) for i = 1, 200000 do end return { fairness_key = 'k' } end"

    def test_decides_every_message(self):
        told = []
        limits = HookLimits.of(LuaConfig(timeout_ms=1000))
        made = hooks(self.SLOW, limits, on_open=lambda *what: told.append(what[:3]))
        assert {made.on_enqueue({}, 0, 0).fairness_key for _ in range(40)} == {"k"}
        assert told == []
        assert made.enqueue_stats.bypassed == 0
        assert not any(made.enqueue_stats.failures.values())


class TestOneCallIntoC:
    """No count hook fires inside a function in C, so each takes a bounded amount at a time."""

    def outcome(self, body):
        """The first error, and what the call used of the clock that a script is held to."""
        made = hooks(f"function on_enqueue(msg) {body} return {{}} end")
        made.on_enqueue({}, 0, 0)
        return made.enqueue_stats

    def test_quoting_takes_so_much_at_a_time(self):
        stats = self.outcome("string.format('%q', ('\\1'):rep(8193))")
        assert stats.last_error == "script:1: format: the values have 8193 bytes, 8192 are allowed with %q"
        assert on_enqueue("return {cost=#string.format('%s %q', 'x', ('a'):rep(8000))}").cost == 8004

    def test_formatting_takes_so_many_values(self):
        many = "local t = {} for i = 1, 251 do t[i] = 1/3 end "
        stats = self.outcome(many + "string.format(('%.99f'):rep(251), table.unpack(t))")
        assert stats.last_error == "script:1: format: 251 values were given, 250 are allowed"
        assert on_enqueue("return {cost=#string.format(('%d'):rep(3), 1, 2, 3)}").cost == 3

    @given(
        st.lists(st.sampled_from(["a", "1", "2.5", "-3"]), max_size=1300),
        st.sampled_from(["", ",", "--"]),
        st.integers(-3, 4),
        st.integers(0, 1400),
    )
    @settings(max_examples=60, deadline=None)
    def test_joining_in_parts_is_joining(self, items, separator, first, last):
        """As Lua's own, which is asked for the same list, within bounds and without."""
        texts = [item if item != "a" else "'a'" for item in items]
        whole = f"local t = {{{','.join(texts)}}} return {{fairness_key = tostring(#table.concat(t, '{separator}'))}}"
        expected = len(separator.join(items))
        assert on_enqueue(whole).fairness_key == str(expected)
        low, high = max(first, 1), min(last, len(items))
        part = f"local t = {{{','.join(texts)}}} return {{cost = 1 + #table.concat(t, '{separator}', {low}, {high})}}"
        assert on_enqueue(part).cost == 1 + len(separator.join(items[low - 1 : high]))

    def test_a_list_with_a_hole_is_refused_wherever_the_hole_is(self):
        stats = self.outcome("local t = {} for i = 1, 1200 do t[i] = i end t[901] = {} table.concat(t)")
        assert "invalid value (table) at index 901 in table for 'concat'" in stats.last_error


class Cpu:
    """The CPU time of a machine on which reading the clock takes time as well, as it does where it is a system call."""

    READ_NS = 1_200

    def __init__(self):
        self.now = self.reads = 0
        self.hiccups = set()
        """At which reads 2 ms more have passed than anybody has worked"""

    def read(self):
        self.reads += 1
        self.now += self.READ_NS + (2 * MS if self.reads in self.hiccups else 0)
        return self.now


class TestChecksOfTheTime:
    """They are frequent while instructions are slow, and cost a script that has none next to nothing."""

    LOOP = "function on_enqueue(msg) for i = 1, 60000 do end return {fairness_key = 'done'} end"

    def run(self, source, cpu, config=None, **options):
        runtime = ScriptRuntime(source, "q", LIMITS, config or {}.get, cpu.read, **options)
        began = cpu.now
        try:
            return runtime.enqueue({}, 0), cpu.now - began
        except HookFailed as failure:
            return failure.kind, cpu.now - began

    @pytest.mark.parametrize("hiccups", [1, 3])
    def test_a_machine_that_hesitates_makes_no_script_exceed_its_limit(self, hiccups):
        calm, cpu = Cpu(), Cpu()
        _, usual = self.run(self.LOOP, calm)
        cpu.hiccups = set(range(100, 100 + 300 * hiccups, 300))
        answer, took = self.run(self.LOOP, cpu)
        assert answer == Placement("done")
        assert took - usual < hiccups * 2.5 * MS

    def test_a_script_that_exceeded_its_limit_once_has_the_same_time_afterwards(self):
        _, usual = self.run(self.LOOP, Cpu())
        answer, took = self.run(self.LOOP, Cpu(), slow=True)
        assert answer == Placement("done")
        assert took - usual < MS // 2

    def test_one_call_that_takes_too_long_leads_to_no_others(self):
        source = self.LOOP.replace("60000", "msg.headers.n")
        made = hooks(source, HookLimits.of(timeout_ms=25))
        answers = [made.on_enqueue({"n": n}, 0, 0) for n in ("100000000", *["60000"] * 5)]
        assert answers == [Placement(), *[Placement("done")] * 5]

    @pytest.mark.parametrize("slow", [True, False])
    def test_slow_instructions_are_checked_one_by_one(self, slow):
        """A read of the configuration stands for them, since time can be told to pass in it."""
        cpu, reads = Cpu(), []

        def get(_):
            cpu.now += MS // 2
            reads.append(cpu.reads)
            return "value"

        prelude = "" if slow else "for i = 1, 6 do fila.get('x') end "
        answer, took = self.run(
            f"function on_enqueue() {prelude}while true do fila.get('x') end end", cpu, get, slow=slow
        )
        assert answer == "timeout"
        assert took < 11 * MS
        checks = [after - before for before, after in pairwise(reads[7:])]
        assert min(checks) > 10, "at every instruction between two slow ones"


class TestCompiling:
    """Lua's compiler runs in C. It is fed a little at a time, so that it can be ended."""

    @pytest.mark.parametrize("chain", ["a and ", "a or "])
    def test_it_is_ended_at_its_limit(self, chain):
        seen, now = [], 0

        def clock():
            nonlocal now
            now += MS
            seen.append(now)
            return now

        source = "local x = " + chain * 9_000 + "a"
        with pytest.raises(InvalidArgument, match=f"compiling it exceeded the time limit of {COMPILE_MS} ms"):
            ScriptRuntime(source, "q", LIMITS, {}.get, clock)
        assert len(seen) <= COMPILE_MS + 2

    @pytest.mark.parametrize("jump", ["break ", "goto done "])
    def test_jumps_that_are_resolved_in_one_go_are_bounded(self, jump):
        source = "while a do " + jump * 2001 + " end ::done:: function on_enqueue() return {} end"
        assert "has 2001 jumps (break and goto), 2000 are allowed" in refusal(source)
        hooks(source.replace(jump * 2001, jump * 2000))

    def test_a_script_of_the_largest_size_compiles(self):
        filler = "-- " + "x" * 100 + "\n"
        source = "function on_enqueue() return {fairness_key='k'} end\n"
        source += filler * ((LIMITS.max_script_bytes - len(source)) // len(filler))
        assert hooks(source).on_enqueue({}, 0, 0) == Placement("k")

    def test_a_text_is_the_same_wherever_it_is_cut(self):
        for pad in range(130):
            source = f"--{' ' * pad}\nfunction on_enqueue() return {{fairness_key='ü\\u{{fc}}', cost=0x10}} end"
            assert hooks(source).on_enqueue({}, 0, 0) == Placement("üü", cost=16)
