-- The sandbox: what a script can reach, and the functions through which the broker calls it.
--
-- Rules:
-- * Every value that a script can reach is named in `builtins`. What is missing there does not exist for it: no load, debug,
--   os, io, package, coroutine, collectgarbage, raw access or Python, and no setmetatable, so no metamethod of a script,
--   no finalizer (no hook fires inside one) and no weak table ever exists.
-- * Time: a count hook looks at the clock. Whatever it ends stays ended: `pcall` does not catch it. A function in C that
--   could take long without the hook noticing is replaced by one that cannot: it takes less at a time, and looks.
-- * Memory: the broker's allocator refuses. A script may catch that; it then still has its time limit.
-- * Only strings, numbers, booleans and nil go back to the broker. It turns nothing else of a script's into Python.
-- * Python pushes strings unprotected: running out of memory there would end the process. So `lift` takes the limit away
--   before Python returns one, and `lower` puts it back.

local options, patterns_source, clock, fetch, lift, lower = ...

local error, next, pairs, pcall, rawset, select, setmetatable, tostring, type, xpcall =
  error, next, pairs, pcall, rawset, select, setmetatable, tostring, type, xpcall
local load, collectgarbage = load, collectgarbage
local getinfo, getmetatable, sethook = debug.getinfo, debug.getmetatable, debug.sethook
local find, format, gsub, rep, sub = string.find, string.format, string.gsub, string.rep, string.sub
local mathtype, tointeger = math.type, math.tointeger
local concat, insert, remove, unpack = table.concat, table.insert, table.remove, table.unpack
local utf8len = utf8.len

local queue, limit_ns, limit_text = options.queue, options.limit_ns, options.limit_text
local compile_ns, compile_text = options.compile_ns, options.compile_text
local max_key_bytes, max_throttle_keys = options.max_key_bytes, options.max_throttle_keys
local max_weight, max_cost, max_priority = options.max_weight, options.max_cost, options.max_priority
local max_delay_ms = options.max_delay_ms

local SCRIPT, OURS = "=script", "=fila"
local NO_MEMORY = "not enough memory"
local MAX_ERROR_BYTES = 400
-- Longer lists are refused by what walks them in C. A table's length can be forged with a few entries.
local MAX_LIST = 100000
local MAX_CONFIG_KEY_BYTES = 255
-- Lua's compiler needs quadratic time for some texts, such as an endless "a and a and a", and no hook fires in it. It is
-- given so many bytes at a time, and the time is looked at in between.
local COMPILED_BYTES = 128
-- Values that string.format takes, and bytes of those that it quotes: with "%q" some bytes take as long as a hundred others.
local MAX_FORMATTED = 250
local MAX_QUOTED_BYTES = 8192
-- Items that table.concat joins at a time. Writing a number takes long.
local JOINED = 500
-- From how much on the time is looked at after a function that goes over it.
local LONG = 4096

-- Instructions between two looks. Few, because one instruction can copy, compare or collect a whole memory limit.
local STRIDE = 16
-- A script that uses little memory cannot make an instruction very slow, so only each fourth tick reads the clock.
local CALM_KB, CALM_TICKS = 96, 3
-- From so much memory on a few instructions can take as long as a call may, so more of them are watched.
local LARGE_KB, LARGE_STRIDE = 160, 4
local LARGE_BYTES = 32768
-- When instructions took so long since the last look, they are watched one by one until the call ends; and in so many
-- calls from the start, after one that had to be ended.
local SLOW_NS, SLOW_CALLS = 1000000, 100

local ticks, began, seen, killed = 0, nil, nil, nil
-- Whether the script runs, not what is around it.
local inside = false
-- In how many calls its instructions are watched one by one.
local slow = options.slow and SLOW_CALLS or 0
local calm, large = 0, 0
local stride = slow > 0 and 1 or STRIDE
local tick

local function watch(instructions)
  stride = instructions
  sethook(tick, "", instructions)
end

local function enter()
  if slow > 0 then slow = slow - 1 end
  local wanted = slow > 0 and 1 or STRIDE
  if stride ~= wanted then watch(wanted) end
  ticks, began, seen, killed = 0, nil, nil, nil
  inside = true -- last: a tick may come in between
end

-- Where the script is: "script:LINE: ".
local function where(level)
  for each = level, level + 30 do
    local info = getinfo(each, "Sl")
    if info == nil then break end
    if info.source == SCRIPT then return "script:" .. info.currentline .. ": " end
  end
  return ""
end

-- Look at the clock now.
local function look()
  if not inside then return end
  local now = clock()
  if began == nil then
    seen = now -- first: a tick may come in between
    began = now
  end
  if stride > 1 and now - seen > SLOW_NS then watch(1) end
  seen = now
  if killed or now - began >= limit_ns then
    killed = killed or where(3) .. limit_text
    error(killed, 0)
  end
end

function tick()
  ticks = ticks + 1
  local used = collectgarbage("count")
  if ticks & CALM_TICKS ~= 0 and stride == STRIDE and not killed and used < calm then return end
  if stride == STRIDE and used > large then watch(LARGE_STRIDE) end
  return look()
end

-- Limits cannot be caught, not even by accident: where memory or stack are used up, the hook itself may fail to run.
local function settle(ok, problem, ...)
  if killed then error(killed, 0) end
  if not ok and type(problem) == "string" and (problem == NO_MEMORY or problem == "error in error handling"
    or find(problem, "stack overflow", 1, true)) then error(problem, 0) end
  return ok, problem, ...
end

local function safe_pcall(f, ...)
  return settle(pcall(f, ...))
end

-- Called where the error happened. Nothing of the script runs after it.
local function located(problem)
  inside = false
  if killed or problem == NO_MEMORY or type(problem) ~= "string" or find(problem, "script:", 1, true) == 1 then return problem end
  return where(3) .. gsub(sub(problem, 1, MAX_ERROR_BYTES), "^fila:%d+: ", "")
end

-- Kind and text of what ended a call, as printable text of bounded length.
local function failure(problem)
  if killed then return false, "timeout", killed end
  if problem == NO_MEMORY then return false, "memory", problem end
  if type(problem) == "number" then
    problem = tostring(problem)
  elseif type(problem) ~= "string" then
    problem = "the error is a " .. type(problem) .. ", not a string"
  end
  problem = gsub(sub(problem, 1, MAX_ERROR_BYTES), "%c", " ")
  if not utf8len(problem) then problem = gsub(problem, "[\128-\255]", "?") end
  return false, "error", problem
end

local function refused(text)
  return false, "bad_return", text
end

local function read_only()
  error("this table is read-only", 2)
end

local function each_of(proxy)
  local content = getmetatable(proxy).__index
  return function(_, key) return next(content, key) end, nil, nil
end

local function frozen(content)
  return setmetatable({}, { __index = content, __newindex = read_only, __pairs = each_of, __metatable = false })
end

local function copied(from, ...)
  local to = {}
  for i = 1, select("#", ...) do
    local name = select(i, ...)
    to[name] = from[name]
  end
  return to
end

local safe_string = copied(string, "byte", "char", "len", "lower", "reverse", "sub", "upper")
local raw = copied(string, "byte", "char", "find", "gmatch", "gsub", "match", "sub")
raw.concat, raw.unpack, raw.tointeger = table.concat, unpack, tointeger
raw.error, raw.type, raw.tostring = error, type, tostring
for name, f in pairs(load(patterns_source, OURS, "t", {})(raw)) do safe_string[name] = f end

-- In C, repeating nothing 2^63 times takes as long as it sounds.
function safe_string.rep(s, n, separator)
  if s == "" and (separator == nil or separator == "") then return "" end
  look()
  local result = rep(s, n, separator)
  if #result > LARGE_BYTES and stride == STRIDE then watch(LARGE_STRIDE) end
  return result
end

function safe_string.format(template, ...)
  local count = select("#", ...)
  if count > MAX_FORMATTED then error("format: there must not be more than " .. MAX_FORMATTED .. " values", 2) end
  if type(template) == "string" and find(template, "%q", 1, true) then
    local bytes = 0
    for i = 1, count do
      local value = select(i, ...)
      if type(value) == "string" then bytes = bytes + #value end
    end
    if bytes > MAX_QUOTED_BYTES then
      error("format: with %q the values must not exceed " .. MAX_QUOTED_BYTES .. " bytes", 2)
    end
  end
  look()
  return format(template, ...)
end

local safe_table = copied(table, "pack", "unpack")

function safe_table.concat(list, separator, first, last)
  first = first or 1
  if last == nil and type(list) == "table" then last = #list end
  if mathtype(first) ~= "integer" or mathtype(last) ~= "integer" or last - first < JOINED or first > last then
    return concat(list, separator, first, last)
  end
  local parts, n = {}, 0
  for from = first, last, JOINED do
    look()
    n = n + 1
    parts[n] = concat(list, separator, from, last - from < JOINED and last or from + JOINED - 1)
  end
  return safe_table.concat(parts, separator)
end

local function check_list(list, name)
  if type(list) ~= "table" then error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(list) .. ")", 3) end
  if #list > MAX_LIST then error(name .. ": a list must not exceed " .. MAX_LIST .. " items", 3) end
  if #list > LONG then look() end
end

function safe_table.insert(list, ...)
  check_list(list, "insert")
  return insert(list, ...)
end

function safe_table.remove(list, ...)
  check_list(list, "remove")
  return remove(list, ...)
end

function safe_table.move(from, first, last, at, to)
  to = to or from
  if at > last or at <= first or to ~= from then
    for i = 0, last - first do to[at + i] = from[first + i] end
  else
    for i = last - first, 0, -1 do to[at + i] = from[first + i] end
  end
  return to
end

local function less(a, b)
  return a < b
end

-- A merge sort: its effort does not depend on what the comparison answers.
function safe_table.sort(list, before)
  check_list(list, "sort")
  before = before or less
  local n, from, to = #list, list, {}
  local width = 1
  while width < n do
    for low = 1, n, 2 * width do
      local middle, high = low + width, low + 2 * width
      if middle > n + 1 then middle = n + 1 end
      if high > n + 1 then high = n + 1 end
      local left, right = low, middle
      for i = low, high - 1 do
        if left < middle and (right >= high or not before(from[right], from[left])) then
          to[i], left = from[left], left + 1
        else
          to[i], right = from[right], right + 1
        end
      end
    end
    from, to, width = to, from, width * 2
  end
  if from ~= list then
    for i = 1, n do list[i] = from[i] end
  end
end

local function get(key)
  if type(key) ~= "string" then error("fila.get: the key must be a string, not a " .. type(key), 2) end
  if #key > MAX_CONFIG_KEY_BYTES or not utf8len(key) then return nil end
  lift()
  local ok, value = pcall(fetch, key)
  lower()
  if not ok then error("fila.get: the configuration cannot be read", 2) end
  return value
end

local safe_math = copied(math, "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max",
  "maxinteger", "min", "mininteger", "modf", "pi", "rad", "random", "randomseed", "sin", "sqrt", "tan", "tointeger", "type", "ult")
local safe_utf8 = copied(utf8, "char", "charpattern", "codepoint", "codes", "len", "offset")

local builtins = {
  assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = safe_pcall, select = select,
  tonumber = tonumber, tostring = tostring, type = type, _VERSION = _VERSION,
  fila = frozen({ get = get }), math = frozen(safe_math), string = frozen(safe_string), table = frozen(safe_table),
  utf8 = frozen(safe_utf8),
}

local function assign(environment, name, value)
  if builtins[name] ~= nil then error(tostring(name) .. " is read-only", 2) end
  rawset(environment, name, value)
end

local environment = setmetatable({}, { __index = builtins, __newindex = assign, __metatable = false })

local strings = getmetatable("")
strings.__index = safe_string
strings.__metatable = false

-- Nothing of the real globals is needed any more, so nothing of them is left, Python least of all.
local globals = _G
for name in next, globals do globals[name] = nil end

local on_enqueue, on_failure

local function read_only_headers(headers)
  return setmetatable({}, { __index = headers, __newindex = read_only, __pairs = each_of, __metatable = false })
end

local function many_headers(...)
  local headers, all = {}, { ... }
  for i = 1, #all, 2 do headers[all[i]] = all[i + 1] end
  return read_only_headers(headers)
end

-- A whole number from `low` to `high`, or nil.
local function whole(value, low, high)
  if mathtype(value) == "float" then value = tointeger(value) end
  if mathtype(value) == "integer" and value >= low and value <= high then return value end
  return nil
end

local function not_whole(name, low, high)
  return refused(name .. " must be a whole number from " .. low .. " to " .. high)
end

local function place(payload_size, headers)
  local message = { headers = headers, payload_size = payload_size, queue = queue }
  enter()
  local ok, answer = xpcall(on_enqueue, located, message)
  inside = false
  if not ok then return failure(answer) end
  if type(answer) ~= "table" then return refused("on_enqueue must return a table, not a " .. type(answer)) end
  local key, weight, keys = answer.fairness_key, answer.weight, answer.throttle_keys
  local cost, priority, delay = answer.cost, answer.priority, answer.delay_ms
  if key == "" then
    key = nil
  elseif key ~= nil and (type(key) ~= "string" or #key > max_key_bytes) then
    return refused("fairness_key must be a string of at most " .. max_key_bytes .. " bytes")
  end
  if weight == nil then
    weight = 1
  else
    weight = whole(weight, 1, max_weight)
    if weight == nil then return not_whole("weight", 1, max_weight) end
  end
  if cost == nil then
    cost = 1
  else
    cost = whole(cost, 1, max_cost)
    if cost == nil then return not_whole("cost", 1, max_cost) end
  end
  if priority ~= nil then
    priority = whole(priority, 0, max_priority)
    if priority == nil then return not_whole("priority", 0, max_priority) end
  end
  if delay ~= nil then
    delay = whole(delay, 0, max_delay_ms)
    if delay == nil then return not_whole("delay_ms", 0, max_delay_ms) end
  end
  if keys == nil then return key, weight, cost, priority, delay end
  if type(keys) ~= "table" then return refused("throttle_keys must be a list of strings") end
  local n = #keys
  if n > max_throttle_keys then return refused("throttle_keys must not be more than " .. max_throttle_keys) end
  if n == 0 and next(keys) ~= nil then return refused("throttle_keys must be a list of strings") end
  for i = 1, n do
    local each = keys[i]
    if type(each) ~= "string" or each == "" or #each > max_key_bytes then
      return refused("throttle_keys must be strings of 1 to " .. max_key_bytes .. " bytes")
    end
  end
  return key, weight, cost, priority, delay, unpack(keys, 1, n)
end

-- Two ways in, because a function with any number of arguments is the slower one, and constructors that name their keys
-- make a table of the right size at once.
local function enqueue_few(payload_size, k1, v1, k2, v2, k3, v3, k4, v4)
  local headers
  if k3 == nil then
    if k2 ~= nil then
      headers = { [k1] = v1, [k2] = v2 }
    elseif k1 ~= nil then
      headers = { [k1] = v1 }
    end
  elseif k4 == nil then
    headers = { [k1] = v1, [k2] = v2, [k3] = v3 }
  else
    headers = { [k1] = v1, [k2] = v2, [k3] = v3, [k4] = v4 }
  end
  return place(payload_size, read_only_headers(headers or {}))
end

local function enqueue_many(payload_size, ...)
  return place(payload_size, many_headers(...))
end

local function fail(id, attempts, problem, ...)
  local message = { headers = many_headers(...), id = id, attempts = attempts, queue = queue, error = problem }
  enter()
  local ok, answer = xpcall(on_failure, located, message, problem)
  inside = false
  if not ok then return failure(answer) end
  if type(answer) ~= "table" then return refused("on_failure must return a table, not a " .. type(answer)) end
  local action, delay = answer.action, answer.delay_ms
  if action ~= nil and action ~= "retry" and action ~= "dlq" then return refused('action must be "retry" or "dlq"') end
  if delay ~= nil then
    delay = whole(delay, 0, max_delay_ms)
    if delay == nil then return not_whole("delay_ms", 0, max_delay_ms) end
  end
  return true, action == "dlq", delay
end

-- The text of a script, a little at a time, until its time is over.
local function pieces(source)
  local start, at = clock(), 1
  return function()
    if clock() - start > compile_ns then
      killed = compile_text
      error(killed, 0)
    end
    local piece = sub(source, at, at + COMPILED_BYTES - 1)
    at = at + COMPILED_BYTES
    return piece
  end
end

-- Compiles and runs the script. Which hooks it defines, or what is wrong with it.
local function define(source)
  local chunk, problem = load(pieces(source), SCRIPT, "t", environment)
  if chunk == nil then return failure(problem) end
  local ok
  enter()
  ok, problem = xpcall(chunk, located)
  inside = false
  if not ok then return failure(problem) end
  on_enqueue, on_failure = environment.on_enqueue, environment.on_failure
  for name, hook in next, { on_enqueue = on_enqueue, on_failure = on_failure } do
    if type(hook) ~= "function" then return false, "error", name .. " must be a function, not a " .. type(hook) end
  end
  return true, on_enqueue ~= nil, on_failure ~= nil
end

local function collect()
  collectgarbage()
end

-- A script lives in little memory, and most of what a call makes is garbage after it: rounds that let memory double keep
-- nearly all scripts calm.
collectgarbage("incremental", 200)
calm = collectgarbage("count") + CALM_KB
large = calm + LARGE_KB
watch(stride)
return define, enqueue_few, enqueue_many, fail, collect
