"""Scripts that mean harm. In each case the message takes the defaults and nobody else notices."""
# ruff: noqa: E501 - a script on one line is easier to read than one in pieces

from dataclasses import dataclass

import pytest

from fila.core.policy import Placement
from fila.lua.hooks import Hooks
from fila.lua.limits import HookLimits

LIMITS = HookLimits.of()
#: For attacks that are not about time, so that a slow machine does not make them so.
PATIENT = HookLimits.of(timeout_ms=1000)


@dataclass(frozen=True)
class Attack:
    name: str
    body: str
    """What `on_enqueue` does when the header `attack` is there."""
    kinds: set[str]
    """How the failure is counted."""
    prelude: str = ""


def endless(name, body, prelude=""):
    return Attack(name, body, {"timeout"}, prelude)


def greedy(name, body, prelude=""):
    return Attack(name, body, {"memory", "timeout"}, prelude)


def absent(name, body, prelude=""):
    return Attack(name, body, {"error"}, prelude)


def wrong(name, answer, prelude=""):
    return Attack(name, f"return {answer}", {"bad_return"}, prelude)


FORGED = "local t = {" + ", ".join(f"[1 << {power}] = 'x'" for power in reversed(range(63))) + "} "
"""A table whose length is astronomic though it has a few entries."""

ENDLESS = [
    endless("loop", "while true do end"),
    endless("numeric loop", "for i = 1, math.maxinteger do end"),
    endless("goto", "::again:: goto again"),
    endless("recursion without growth", "return f()", "function f() return f() end"),
    endless("in pcall", "while true do pcall(function() while true do end end) end"),
    Attack("in nested pcall", "local function f() while true do pcall(f) pcall(f) end end f()", {"timeout", "error"}),
    endless("pcall of pcall", "while true do pcall(pcall, pcall, function() while true do end end) end"),
    endless("catching every error", "while true do pcall(error, {}) end"),
    endless("error objects", "while true do pcall(function() error(function() end) end) end"),
    endless("gsub callback", "string.gsub(('x'):rep(100), 'x', function() while true do end end)"),
    endless(
        "gsub callback in pcall", "while true do pcall(string.gsub, 'x', 'x', function() while true do end end) end"
    ),
    endless("gsub callback that is C", "while true do string.gsub(('x'):rep(1000), '.', tostring) end"),
    endless("sort comparison", "table.sort({3, 2, 1}, function() while true do end end)"),
    endless(
        "sort with lies",
        "local t = {} for i = 1, 5000 do t[i] = i end while true do table.sort(t, function() return true end) end",
    ),
    endless(
        "sort comparison in C", "local t = {} for i = 1, 5000 do t[i] = i end while true do table.sort(t, tostring) end"
    ),
    endless("iterator", "for x in function() return 1 end do end"),
    endless("iterator in C", "for x in tostring, 1 do end"),
    endless("moving nothing for ever", "table.move({}, 1, math.maxinteger - 1, 2)"),
    endless("growing string, dropped", "while true do local s = ('x'):rep(1000) .. 'y' end"),
    endless("long strings copied", "local s = ('x'):rep(300000) while true do local _ = s .. 'y' end"),
    endless(
        "long strings compared", "local a, b = ('x'):rep(200000), ('x'):rep(200000) while true do local _ = a == b end"
    ),
    endless(
        "long strings ordered", "local a, b = ('x'):rep(200000), ('x'):rep(200000) while true do local _ = a < b end"
    ),
    endless("long numbers added", "local s = ('0'):rep(400000) while true do local _ = s + 0 end"),
    endless("long numbers by tonumber", "local s = ('f'):rep(400000) while true do tonumber(s, 16) end"),
    endless("upper and lower", "local s = ('x'):rep(200000) while true do s:upper() end"),
    endless("reversing", "local s = ('x'):rep(200000) while true do s:reverse() end"),
    endless("formatting", "local s = ('x'):rep(100000) while true do string.format('%s%s', s, s) end"),
    endless("joining", "local t = {} for i = 1, 20000 do t[i] = 'x' end while true do table.concat(t) end"),
    endless(
        "inserting in front",
        "local t = {} for i = 1, 30000 do t[i] = i end while true do table.insert(t, 1, 1) table.remove(t, 1) end",
    ),
    endless("utf8", "local s = ('x'):rep(300000) while true do utf8.len(s) end"),
    endless(
        "collecting all the time",
        "local t = {} for i = 1, 9000 do t[i] = {} end while true do local _ = ('x'):rep(200000) end",
    ),
    endless(
        "table rehashed",
        "local t = {} for i = 1, 8191 do t['k' .. i] = 1 end local i = 0 while true do i = i + 1 t['k' .. i] = nil t['k' .. i + 8191] = 1 end",
    ),
    endless(
        "strings of zeros ordered",
        "local a, b = ('\\0'):rep(200000), ('\\0'):rep(200000) while true do local _ = a < b end",
    ),
    endless("quoting zeros", "local s = ('\\0'):rep(8000) while true do string.format('%q', s) end"),
    endless(
        "strings of zeros ordered without much memory",
        "local a, b = ('\\0'):rep(40000), ('\\0'):rep(40000) while true do " + "if a < b then end " * 200 + "end",
    ),
    endless("joining numbers", "local t = {} for i = 1, 9000 do t[i] = i / 3 end while true do table.concat(t) end"),
    endless("many results", "local s = ('x'):rep(20000) while true do s:byte(1, -1) utf8.codepoint(s, 1, -1) end"),
    endless(
        "emptied table",
        "local t = {} for i = 1, 4000 do t['k' .. i] = 1 end for i = 1, 4000 do t['k' .. i] = nil end while true do next(t) end",
    ),
    endless("enormous errors", "while true do pcall(error, ('x'):rep(300000)) end"),
    endless("repeating nothing", "while true do local _ = (''):rep(math.maxinteger, '') end"),
    endless("configuration", "while true do fila.get('key') end"),
    endless(
        "plain find of the almost equal",
        "local s = ('a'):rep(200000) while true do s:find(('a'):rep(100000) .. 'b', 1, true) end",
    ),
    endless("find of text without specials", "local s = ('a'):rep(200000) s:find(('a'):rep(100000) .. 'b')"),
    endless("optional characters", "local n = 30 return ('a'):rep(n):find(('a?'):rep(n) .. ('a'):rep(n) .. 'b')"),
    endless(
        "optional characters, match", "local n = 30 return ('a'):rep(n):match(('a?'):rep(n) .. ('a'):rep(n) .. 'b')"
    ),
    endless(
        "optional characters, gsub", "local n = 30 return ('a'):rep(n):gsub(('a?'):rep(n) .. ('a'):rep(n) .. 'b', '')"
    ),
    endless(
        "optional characters, gmatch",
        "local n = 30 for _ in ('a'):rep(n):gmatch(('a?'):rep(n) .. ('a'):rep(n) .. 'b') do end",
    ),
    endless(
        "pattern in pcall",
        "local n = 30 while true do pcall(string.find, ('a'):rep(n), ('a?'):rep(n) .. ('a'):rep(n) .. 'b') end",
    ),
    endless("many stars", "return ('a'):rep(5000):find(('a*'):rep(20) .. 'b')"),
    endless("many minuses", "return ('a'):rep(5000):find(('.-'):rep(20) .. 'b')"),
    endless("many pluses in captures", "return ('a'):rep(5000):find(('(a+)'):rep(20) .. 'b')"),
    endless("quadratic, long subject", "return ('a'):rep(400000):find('a*b')"),
    endless("balance, long subject", "return ('('):rep(400000):find('%b()')"),
    endless("back references", "return ('a'):rep(20000):find('(a*)(a*)%1%2b')"),
    endless("wide sets", "return ('a'):rep(50000):find('[' .. ('b'):rep(50000) .. ']*c')"),
    endless("frontier", "return ('a '):rep(100000):find('%f[%w]' .. ('a* *'):rep(9) .. 'b')"),
    endless("cheap patterns again and again", "local s = ('a'):rep(900) while true do s:find('a*b') end"),
    endless(
        "deep pcall, then a loop below it",
        "local function f(n) if n > 0 then return pcall(f, n - 1) end while true do end end f(150)",
    ),
]

# At some depth the count hook itself may fail to run, which must not be a way around it.
ENDLESS += [
    Attack(
        f"loop at C depth {depth}",
        f"local function f(n) if n > 0 then pcall(f, n - 1) return end while true do pcall(function() for i = 1, 1e9 do end end) end end f({depth})",
        {"timeout", "error"},
    )
    for depth in (100, 180, *range(186, 202), 250)
]

GREEDY = [
    greedy("string doubling", "local s = 'x' while true do s = s .. s end"),
    greedy("string.rep", "return ('x'):rep(1 << 30)"),
    greedy("string.rep with separator", "return ('x'):rep(1 << 20, ('y'):rep(100))"),
    greedy("table growth", "local t = {} while true do t[#t + 1] = {} end"),
    greedy(
        "table growth in pcall",
        "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1000) .. #t end) end",
    ),
    greedy("keys", "local t = {} for i = 1, math.huge do t['key' .. i] = true end"),
    greedy("closures", "local t = {} while true do t[#t + 1] = function() return t end end"),
    greedy("concat", "local t, s = {}, ('x'):rep(1000) for i = 1, 5000 do t[i] = s end return table.concat(t)"),
    greedy("gsub growth", "return ('x'):rep(10000):gsub('x', ('y'):rep(1000))"),
    greedy("gsub growth by %0", "return ('x'):rep(10000):gsub('.+', ('%0'):rep(1000))"),
    greedy(
        "format growth",
        "local s = ('x'):rep(100000) return string.format(('%s'):rep(20), s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)",
    ),
    greedy("kept between messages", "keep = keep or {} while true do keep[#keep + 1] = ('x'):rep(100) .. #keep end"),
    greedy(
        "filled to the last byte",
        "local t = {} for _, n in ipairs{100000, 10000, 1000, 100, 10, 1} do while pcall(function() t[#t + 1] = ('x'):rep(n) .. #t end) do end end while true do end",
    ),
    greedy("recursion", "local function f() return 1 + f() end return f()"),
    Attack("recursion in pcall", "local function f() pcall(f) return 1 + f() end return f()", {"timeout", "error"}),
    greedy(
        "many arguments",
        "local t = {} for i = 1, 20000 do t[i] = 1 end local function f(...) return f(1, ...) end return f(table.unpack(t))",
    ),
    greedy("gmatch state", "local t = {} while true do t[#t + 1] = ('x'):gmatch('x') end"),
]

ABSENT = [
    *(
        absent(f"no {name}", f"return {name}.x or {name}()")
        for name in (
            "_G",
            "collectgarbage",
            "coroutine",
            "debug",
            "dofile",
            "getmetatable",
            "io",
            "load",
            "loadfile",
            "loadstring",
            "lupa",
            "os",
            "package",
            "print",
            "python",
            "rawequal",
            "rawget",
            "rawlen",
            "rawset",
            "require",
            "setmetatable",
            "warn",
            "xpcall",
        )
    ),
    *(
        absent(f"no {name}", f"return {name}('')")
        for name in ("string.dump", "string.pack", "string.unpack", "string.packsize", "math.pow")
    ),
    absent("bytecode through string.dump", "return ('').dump(on_enqueue)"),
    absent("globals through _ENV", "return _ENV.debug.sethook()"),
    absent("metatable of strings", "return (''):getmetatable()"),
    absent("coroutine", "coroutine.wrap(function() while true do end end)()"),
    absent("finalizer", "setmetatable({}, {__gc = function() while true do end end})"),
    absent("closing variable", "local x <close> = {} return {}"),
    absent("closing value of a loop", "for x in next, {}, nil, {} do end"),
    absent("headers are read-only", "msg.headers.tenant = 'other'"),
    absent("headers by table.insert", "table.insert(msg.headers, 'x')"),
    absent("headers by table.sort", "table.sort(msg.headers) table.move({1}, 1, 1, 1, msg.headers)"),
    absent("string is read-only", "string.upper = nil"),
    absent("string is read-only for methods", "('x').upper = nil"),
    absent("string as a whole", "string = {}"),
    absent("global function", "tostring = function() return 'x' end"),
    absent("library by table.insert", "table.insert(string, 'x')"),
    absent("table library", "table.insert = nil"),
    absent("math library", "math.floor = nil"),
    absent("fila", "fila.get = nil"),
    absent("pcall replaced", "pcall = nil"),
    absent("deep C recursion", "local function f() return (('x'):gsub('x', f)) end return f()"),
    absent("deep pcall recursion", "local function f() local _, e = pcall(f) error(e, 0) end f()"),
    absent("string.rep beyond all limits", "return ('x'):rep(1 << 62)"),
    absent("quoting much at a time", "string.format('%q', ('\\1'):rep(90000))"),
    absent("formatting many values", "string.format(('%.99f'):rep(251), table.unpack({}, 1, 251))"),
    absent("enormous format", "return string.format('%99999d', 1)"),
    absent("too many captures", "return ('a'):find(('(a?)'):rep(40))"),
    absent("malformed pattern", "return ('a'):find('[a')"),
    absent("unpacking too much", "return table.unpack({}, 1, 1e8)"),
    absent("forged length, insert", FORGED + "table.insert(t, 1, 1)"),
    absent("forged length, remove", FORGED + "table.remove(t, 1)"),
    absent("forged length, sort", FORGED + "table.sort(t, tostring)"),
    absent("forged length, concat", FORGED + "return table.concat(t)"),
    absent("forged length, unpack", FORGED + "return table.unpack(t)"),
    absent("error that is a table", "error({})"),
    absent("error that is a function", "error(print)"),
    absent("error that is enormous", "error(('x'):rep(300000))"),
    absent("error that is not text", "error('\\xff\\xfe\\0')"),
    absent("error that is nothing", "error()"),
    absent("error that is a header table", "error(msg.headers)"),
    absent("configuration with a bad key", "fila.get({})"),
    absent("reaching into configuration", "fila.get.x()"),
]

WRONG = [
    wrong("nothing", ""),
    wrong("nil", "nil"),
    wrong("string", "'acme'"),
    wrong("number", "1"),
    wrong("function", "tostring"),
    wrong("key that is a number", "{fairness_key = 1}"),
    wrong("key that is a table", "{fairness_key = {}}"),
    wrong("key that is false", "{fairness_key = false}"),
    wrong("key that is too long", "{fairness_key = ('x'):rep(256)}"),
    wrong("key that is enormous", "{fairness_key = ('x'):rep(300000)}"),
    wrong("key that is not UTF-8", "{fairness_key = '\\xff\\xfe'}"),
    wrong("key that is half a surrogate", "{fairness_key = '\\xed\\xa0\\x80'}"),
    *(
        wrong(f"{name} {value}", f"{{{name} = {value}}}")
        for name in ("weight", "cost", "priority", "delay_ms")
        for value in ("-1", "1.5", "0/0", "1/0", "-1/0", "1e300", "math.maxinteger", "'1'", "true", "false", "{}", "tostring")
    ),
    wrong("weight 0", "{weight = 0}"),
    wrong("weight 1001", "{weight = 1001}"),
    wrong("cost 0", "{cost = 0}"),
    wrong("priority 256", "{priority = 256}"),
    wrong("throttle keys that are a string", "{throttle_keys = 'a'}"),
    wrong("throttle keys that are a map", "{throttle_keys = {a = 'b'}}"),
    wrong("throttle keys with a hole", "{throttle_keys = {'a', nil, 'b'}}"),
    wrong("throttle key that is a number", "{throttle_keys = {1}}"),
    wrong("throttle key that is a table", "{throttle_keys = {{}}}"),
    wrong("throttle key that is empty", "{throttle_keys = {''}}"),
    wrong("throttle key that is too long", "{throttle_keys = {('x'):rep(256)}}"),
    wrong("throttle key that is not UTF-8", "{throttle_keys = {'a', '\\xff'}}"),
    Attack("ten thousand throttle keys", "local t = {} for i = 1, 10000 do t[i] = 'k' .. i end return {throttle_keys = t}", {"bad_return"}),
    Attack("throttle keys of forged length", FORGED + "return {throttle_keys = t}", {"bad_return"}),
]  # fmt: skip

ATTACKS = [*ENDLESS, *GREEDY, *ABSENT, *WRONG]


def script(attack):
    return f"""
{attack.prelude}
function on_enqueue(msg)
  if msg.headers.attack then
    {attack.body}
  end
  local tenant = string.upper(msg.headers.tenant):lower()
  return {{fairness_key = tenant, weight = 2}}
end
"""


@pytest.fixture(scope="module")
def neighbour():
    return Hooks(
        "function on_enqueue(msg) return {fairness_key = msg.headers.tenant:upper()} end",
        "other",
        LIMITS,
        lambda _: None,
    )


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.timeout(20)
def test_an_attack_takes_the_defaults_and_nobody_else_notices(attack, neighbour):
    limits = LIMITS if "timeout" in attack.kinds else PATIENT
    hooks = Hooks(script(attack), "queue", limits, lambda key: "value")
    good = Placement(fairness_key="acme", weight=2)
    assert hooks.on_enqueue({"tenant": "acme"}, 1, 0) == good
    for _ in range(2):
        assert hooks.on_enqueue({"tenant": "acme", "attack": "1"}, 1, 0) == Placement()
        assert hooks.on_enqueue({"tenant": "acme"}, 1, 0) == good
        assert neighbour.on_enqueue({"tenant": "acme"}, 1, 0) == Placement(fairness_key="ACME")
    failures = hooks.enqueue_stats.failures
    assert sum(failures[kind] for kind in attack.kinds) == sum(failures.values()) == 2, failures
    assert 0 < len(hooks.enqueue_stats.last_error) <= 500
