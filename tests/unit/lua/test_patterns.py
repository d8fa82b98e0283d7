"""The matcher that the time limit can end finds what Lua's own finds, and Lua's own is used only where it is quick."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lupa import lua54

import fila.lua

PATTERNS = Path(fila.lua.__file__).with_name("patterns.lua").read_text(encoding="utf-8")

BOTH = """
local source, max_steps = ...
source = source:gsub("MAX_STEPS = %d+", "MAX_STEPS = " .. max_steps)
local raw = {}
for name, f in pairs(string) do raw[name] = f end
raw.concat, raw.unpack, raw.tointeger = table.concat, table.unpack, math.tointeger
raw.error, raw.type, raw.tostring = error, type, tostring
local used = 0
for _, name in ipairs{"match", "gmatch"} do
  local f = raw[name]
  raw[name] = function(...) used = used + 1 return f(...) end
end
local ours = load(source)(raw)

local function all(f, s, p, init)
  local found = {}
  for a, b, c in f(s, p, init) do
    found[#found + 1] = table.concat({tostring(a), tostring(b), tostring(c)}, ",")
    if #found > 50 then break end
  end
  return table.concat(found, ";")
end

local function calls(lib, s, p, init, repl)
  return {
    function() return lib.find(s, p, init) end,
    function() return lib.match(s, p, init) end,
    function() return all(lib.gmatch, s, p, init) end,
    function() return lib.gsub(s, p, repl) end,
    function() return lib.gsub(s, p, "<%0>", init) end,
    function() return lib.gsub(s, p, {a = "A", b = false, ab = 7}) end,
    function() return lib.gsub(s, p, function(a, b) return b or (a ~= "" and a) or nil end) end,
    function() return lib.find(s, p, init, true) end,
  }
end

local function compare(s, p, init, repl)
  local theirs, mine = calls(string, s, p, init, repl), calls(ours, s, p, init, repl)
  for i = 1, #theirs do
    local a, b = table.pack(pcall(theirs[i])), table.pack(pcall(mine[i]))
    local differs = a[1] ~= b[1]
    if a[1] and b[1] then
      differs = a.n ~= b.n
      for j = 1, a.n do differs = differs or a[j] ~= b[j] end
    elseif a[1] and not b[1] then
      -- A malformed pattern is refused even if the malformed part would never have been reached.
      differs = not b[2]:find("malformed") and not b[2]:find("missing '%['")
    end
    if differs then
      local function shown(t) local r = {} for j = 1, t.n do r[j] = tostring(t[j]) end return table.concat(r, " | ") end
      return i .. ": lua " .. shown(a) .. "   ours " .. shown(b)
    end
  end
  return nil
end

return compare, ours, function() local n = used used = 0 return n end
"""


def made(max_steps):
    runtime = lua54.LuaRuntime(encoding="latin-1")
    return runtime.execute(BOTH, PATTERNS, max_steps)


SLOW, _, _ = made(0)
FAST, OURS, USED = made(1_000_000)

SUBJECTS = st.text("ab, 1(-)^", max_size=12)
PIECES = st.sampled_from(
    ["a", "b", ",", "1", ".", "%a", "%d", "%s", "%w", "%A", "[ab]", "[^a]", "[%a,]", "[a-c]", "[]]",
     "[^]]", "%%", "%-", "%(", "-", "^", "$", " "]
)  # fmt: skip
ITEMS = st.one_of(
    st.tuples(PIECES, st.sampled_from(["", "", "*", "+", "-", "?"])).map("".join),
    st.sampled_from(
        ["(", ")", "()", "%1", "%2", "%0", "%b()", "%bab", "%f[%a]", "%f[^%a]", "%", "[", "%b", "%f", "(a)", "(.-)"]
    ),
)
TEXTS = st.tuples(
    st.sampled_from(["", "^"]), st.lists(ITEMS, max_size=5).map("".join), st.sampled_from(["", "", "$"])
).map("".join)
REPLACEMENTS = st.sampled_from(["", "x", "%0", "%1", "<%1%%>", "%2", "%", "%x", "[%0%0]"])


@given(SUBJECTS, TEXTS, st.none() | st.integers(-4, 15), REPLACEMENTS)
@example("", "()%1", None, "")
@settings(max_examples=300, deadline=None)
def test_the_own_matcher_agrees_with_luas(subject, pattern, init, replacement):
    assert SLOW(subject, pattern, init, replacement) is None


@given(SUBJECTS, TEXTS, st.none() | st.integers(-4, 15), REPLACEMENTS)
@settings(max_examples=200, deadline=None)
def test_whichever_matcher_is_chosen_the_answer_is_luas(subject, pattern, init, replacement):
    assert FAST(subject, pattern, init, replacement) is None


@pytest.mark.parametrize(
    "pattern",
    ["^%w+$", "^(%w+)-(%w+)$", "([^,]+),([^,]+)", "^%x+%-%x+%-%x+%-%x+%-%x+$", "tenant=(%w+)",
     "^(.-):(.*)$", "%d+", "^%s*(.-)%s*$"],
)  # fmt: skip
def test_everyday_patterns_run_in_c(pattern):
    USED()  # what others used before
    OURS.match("3f2b8c1e-aaaa-bbbb-cccc-1234567890ab", pattern)
    assert USED() == 1


@pytest.mark.parametrize(
    "subject,pattern",
    [
        ("a" * 30, "a?" * 30 + "a" * 30 + "b"),
        ("a" * 200, "a*" * 4 + "b"),
        ("a" * 2000, ".-" * 2 + "b"),
        ("a" * 3000, "(a*)%1b"),
        ("(" * 2000, "%b()"),
    ],
)
def test_what_could_take_long_in_c_is_not_run_there(subject, pattern):
    bounded = lua54.LuaRuntime(encoding="latin-1")
    attempt = bounded.execute(
        """
        local source, both, s, p = ...
        local _, ours, used = load(both)(source, 1000000)
        debug.sethook(function() error("ended", 0) end, "", 3000000)
        pcall(ours.match, s, p)
        debug.sethook()
        return used()
        """,
        PATTERNS,
        BOTH,
        subject,
        pattern,
    )
    assert attempt == 0
