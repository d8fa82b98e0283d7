"""Everything that a script can reach, by name, and why it may. Whatever is new has to be argued for here."""

from pathlib import Path

from lupa import lua54

import fila.lua

FOLDER = Path(fila.lua.__file__).parent

#: In C, and bounded by the size of what it is given, which the memory limit bounds.
LINEAR = {
    "string.byte", "string.char", "string.len", "string.lower", "string.reverse", "string.sub",
    "string.upper", "table.pack", "table.unpack", "tonumber", "utf8.char", "utf8.codepoint",
    "utf8.codes", "utf8.len", "utf8.offset",
}  # fmt: skip
#: In C, and quick whatever it is given. Without metatables of a script's own, none of them calls back.
QUICK = {
    "assert", "error", "ipairs", "next", "pairs", "select", "tostring", "type",
    *(
        f"math.{name}"
        for name in (
            "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "log", "max", "min", "modf",
            "rad", "random", "randomseed", "sin", "sqrt", "tan", "tointeger", "type", "ult",
        )
    ),
}  # fmt: skip
#: Ours, in Lua, where the count hook sees them, because Lua's own would not do.
OURS = {
    "fila.get",  # lifts the memory limit while Python returns a string
    "pcall",  # does not catch limits
    "string.find", "string.gmatch", "string.gsub", "string.match",  # bounded in C or done in Lua
    "string.format",  # takes so much at a time
    "string.rep",  # does not repeat nothing for ever
    "table.concat",  # joins so many at a time
    "table.insert", "table.remove",  # refuse forged lengths
    "table.move", "table.sort",  # done in Lua
}  # fmt: skip
VALUES = {
    "_VERSION", "math.huge", "math.maxinteger", "math.mininteger", "math.pi", "utf8.charpattern",
}  # fmt: skip
TABLES = {"fila", "math", "string", "table", "utf8"}

WALK = """
local assert, debug, next, tostring, type = assert, debug, next, tostring, type
local sandbox, patterns = ...
local options = {queue = "q", limit_ns = 1e9, limit_text = "", memory_text = "", compile_ns = 1e9, compile_text = "",
  max_key_bytes = 255, max_throttle_keys = 32,
  max_weight = 1000, max_cost = 1000, max_priority = 255, max_delay_ms = 1000}
local define = load(sandbox, "=fila")(options, patterns, function() return 0 end, nil, nil, nil)
debug.sethook()
local found = {}
local function upvalue(f, wanted)
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if name == nil then return nil end
    if name == wanted then return value end
  end
end
local function kind(value)
  if type(value) ~= "function" then return type(value) end
  return debug.getinfo(value, "S").what == "C" and "C" or "ours"
end
-- Tables are walked as a script could: by what indexing them gives, so through `__index`, and by what they hold.
local function walk(prefix, t, seen)
  if seen[t] then return end
  seen[t] = true
  for key, value in next, t do
    local name = prefix .. tostring(key)
    found[name] = kind(value)
    if type(value) == "table" then walk(name .. ".", value, seen) end
  end
  local meta = debug.getmetatable(t)
  if meta then
    assert(meta.__metatable == false and type(meta.__newindex) == "function", prefix)
    walk(prefix, meta.__index, seen)
  end
end
local environment = upvalue(define, "environment")
walk("", environment, {})
local strings = debug.getmetatable("").__index
local same = debug.getmetatable(environment.string).__index == strings
local left = {}
for name in next, debug.getregistry()[2] do left[#left + 1] = name end
return found, same, #left
"""


def walked():
    runtime = lua54.LuaRuntime()
    sandbox, patterns = ((FOLDER / f"{name}.lua").read_text(encoding="utf-8") for name in ("sandbox", "patterns"))
    found, same, left = runtime.execute(WALK, sandbox, patterns)
    return dict(found.items()), same, left


def test_a_script_reaches_what_is_argued_for_and_nothing_else():
    found, _, _ = walked()
    expected = dict.fromkeys(LINEAR | QUICK, "C") | dict.fromkeys(OURS, "ours") | dict.fromkeys(TABLES, "table")
    assert {name: kind for name, kind in found.items() if name not in VALUES} == expected
    assert found.keys() >= VALUES
    assert {found[name] for name in VALUES} <= {"string", "number"}


def test_methods_of_strings_are_the_same_functions():
    _, same, _ = walked()
    assert same


def test_nothing_is_left_of_the_real_globals():
    _, _, left = walked()
    assert left == 0
