-- The sandbox: what a script can reach, and the functions through which the broker calls it.
--
-- Rules:
-- * `builtins` names every value that a script can reach. Nothing else exists for it: no load, debug, os, io, package,
--   coroutine, collectgarbage, raw access or Python. There is no setmetatable either, so a script has no metamethods, no
--   finalizers (no count hook runs inside one) and no weak tables.
-- * Time: a count hook reads the clock. A call that exceeds its time limit cannot continue: `pcall` does not catch it. A C
--   function that could run long without the count hook is replaced by one that works in small steps and checks the time.
-- * Memory: the allocator of the runtime refuses. `pcall` does not catch that error either.
-- * Only strings, numbers, booleans and nil are returned to the broker. Other values of a script never become Python objects.
-- * Python pushes strings in unprotected mode: running out of memory there would abort the process. So
--   `lift_memory_limit` suspends the limit before Python returns a string, and `restore_memory_limit` enforces it again.

local options, patterns_source, clock, get_config, lift_memory_limit, restore_memory_limit = ...

local error, next, pairs, pcall, rawset, select, setmetatable, tostring, type, xpcall =
  error, next, pairs, pcall, rawset, select, setmetatable, tostring, type, xpcall
local load, collectgarbage = load, collectgarbage
local getinfo, getmetatable, sethook = debug.getinfo, debug.getmetatable, debug.sethook
local find, format, gsub, rep, sub = string.find, string.format, string.gsub, string.rep, string.sub
local mathtype, tointeger = math.type, math.tointeger
local concat, insert, remove, unpack = table.concat, table.insert, table.remove, table.unpack
local utf8len = utf8.len

local queue, memory_text = options.queue, options.memory_text
local limit_ns, limit_text = options.limit_ns, options.limit_text
local compile_ns, compile_text = options.compile_ns, options.compile_text
local max_key_bytes, max_throttle_keys = options.max_key_bytes, options.max_throttle_keys
local max_weight, max_cost, max_priority = options.max_weight, options.max_cost, options.max_priority
local max_delay_ms = options.max_delay_ms

local SCRIPT, OURS = "=script", "=fila"
local NO_MEMORY = "not enough memory"
local MAX_ERROR_BYTES = 400
-- C functions that walk a list refuse longer ones. A few entries are enough to forge the length of a table.
local MAX_LIST = 100000
local MAX_CONFIG_KEY_BYTES = 255
-- Lua's compiler takes quadratic time for some texts, such as a long "a and a and a", and no count hook runs in it. So it
-- reads the script in pieces of this size, and the time is checked before each of them.
local COMPILE_PIECE_BYTES = 128
-- Values that string.format accepts, and their bytes when it quotes: with "%q" some bytes take as long as a hundred others.
local MAX_FORMATTED = 250
local MAX_QUOTED_BYTES = 8192
-- Items that table.concat joins in one step. Formatting numbers is slow.
local MAX_JOINED = 500
-- C functions that walk a list of more items than this check the time first.
local LONG_LIST = 4096

-- Instructions between two calls of the count hook. Few, because one instruction can copy, compare or collect as many
-- bytes as the memory limit allows.
local STRIDE = 16
-- A script that uses little memory has no very slow instructions, so only every fourth call of the hook reads the clock.
local SMALL_KB, SMALL_MASK = 96, 3
-- Above this much memory, a few instructions can take as long as the time limit, so the hook runs more often.
local LARGE_KB, LARGE_STRIDE = 160, 4
local LARGE_BYTES = 32768
-- When more than SLOW_NS passed since the last check, instructions may be slow, and the hook runs at every one of them. After
-- a call that exceeded its time limit, the next SLOW_CALLS calls begin so.
local SLOW_NS, SLOW_CALLS = 1000000, 100
-- It may also have been the machine, and a hook at every instruction makes a script 30 times as slow. So that ends after
-- QUICK_CHECKS instructions in a row that took no more than QUICK_NS each: it costs less than 1 ms.
local QUICK_NS, QUICK_CHECKS = 50000, 256

local hook_calls, began, checked_at, killed = 0, nil, nil, nil
-- Instructions in a row that were quick, while the hook runs at every one.
local quick = 0
-- Whether code of the script runs, rather than code of the sandbox.
local in_script = false
-- How many more calls begin with the hook at every instruction.
local slow = options.slow and SLOW_CALLS or 0
local small, large = 0, 0
local stride = slow > 0 and 1 or STRIDE
local count_hook

local function check_every(instructions)
  stride = instructions
  sethook(count_hook, "", instructions)
end

local function enter()
  if slow > 0 then slow = slow - 1 end
  local wanted = slow > 0 and 1 or STRIDE
  if stride ~= wanted then check_every(wanted) end
  hook_calls, quick, began, checked_at, killed = 0, 0, nil, nil, nil
  in_script = true -- last: the count hook may run in between
end

-- The line of the script that runs now, as "script:LINE: ".
local function where(level)
  for each = level, level + 30 do
    local info = getinfo(each, "Sl")
    if info == nil then break end
    if info.source == SCRIPT then return "script:" .. info.currentline .. ": " end
  end
  return ""
end

-- Run the hook more often when instructions are slow, and less often when they are quick again.
local function adapt(passed)
  if stride > 1 then
    if passed > SLOW_NS then
      quick = 0
      check_every(1)
    end
  elseif passed > QUICK_NS then
    quick = 0
  else
    quick = quick + 1
    if quick >= QUICK_CHECKS then check_every(STRIDE) end
  end
end

-- Read the clock, and end the call if it has exceeded its time limit.
local function check_time()
  if not in_script then return end
  local now = clock()
  if began == nil then
    checked_at = now -- first: the count hook may run in between
    began = now
  end
  adapt(now - checked_at)
  checked_at = now
  if killed or now - began >= limit_ns then
    killed = killed or where(3) .. limit_text
    error(killed, 0)
  end
end

function count_hook()
  hook_calls = hook_calls + 1
  local used = collectgarbage("count")
  if hook_calls & SMALL_MASK ~= 0 and stride == STRIDE and not killed and used < small then return end
  if stride == STRIDE and used > large then check_every(LARGE_STRIDE) end
  return check_time()
end

-- A script cannot catch that it exceeded a limit. Without memory or stack, the count hook itself may fail to run.
local function rethrow_limits(ok, problem, ...)
  if killed then error(killed, 0) end
  if not ok and type(problem) == "string" and (problem == NO_MEMORY or problem == "error in error handling"
    or find(problem, "stack overflow", 1, true)) then error(problem, 0) end
  return ok, problem, ...
end

local function safe_pcall(f, ...)
  return rethrow_limits(pcall(f, ...))
end

-- The message handler of xpcall: adds the line to an error. No code of the script runs after it.
local function with_location(problem)
  in_script = false
  if killed or problem == NO_MEMORY or type(problem) ~= "string" or find(problem, "script:", 1, true) == 1 then return problem end
  return where(3) .. gsub(sub(problem, 1, MAX_ERROR_BYTES), "^fila:%d+: ", "")
end

-- Kind and text of the error that ended a call: printable and of bounded length.
local function failure(problem)
  if killed then return false, "timeout", killed end
  if problem == NO_MEMORY then return false, "memory", memory_text end
  if type(problem) == "number" then
    problem = tostring(problem)
  elseif type(problem) ~= "string" then
    problem = "the script raised a " .. type(problem) .. ": raise a string"
  end
  problem = gsub(sub(problem, 1, MAX_ERROR_BYTES), "%c", " ")
  if not utf8len(problem) then problem = gsub(problem, "[\128-\255]", "?") end
  return false, "error", problem
end

local function bad_return(text)
  return false, "bad_return", text
end

local function read_only()
  error("this table is read-only", 2)
end

local function pairs_of(proxy)
  local content = getmetatable(proxy).__index
  return function(_, key) return next(content, key) end, nil, nil
end

local function read_only_table(content)
  return setmetatable({}, { __index = content, __newindex = read_only, __pairs = pairs_of, __metatable = false })
end

local function copy_of(from, ...)
  local to = {}
  for i = 1, select("#", ...) do
    local name = select(i, ...)
    to[name] = from[name]
  end
  return to
end

local safe_string = copy_of(string, "byte", "char", "len", "lower", "reverse", "sub", "upper")
local raw = copy_of(string, "byte", "char", "find", "gmatch", "gsub", "match", "sub")
raw.concat, raw.unpack, raw.tointeger = table.concat, unpack, tointeger
raw.error, raw.type, raw.tostring = error, type, tostring
for name, f in pairs(load(patterns_source, OURS, "t", {})(raw)) do safe_string[name] = f end

-- In C, repeating an empty string 2^63 times does not end.
function safe_string.rep(s, n, separator)
  if s == "" and (separator == nil or separator == "") then return "" end
  check_time()
  local result = rep(s, n, separator)
  if #result > LARGE_BYTES and stride == STRIDE then check_every(LARGE_STRIDE) end
  return result
end

function safe_string.format(template, ...)
  local count = select("#", ...)
  if count > MAX_FORMATTED then error("format: " .. count .. " values were given, " .. MAX_FORMATTED .. " are allowed", 2) end
  if type(template) == "string" and find(template, "%q", 1, true) then
    local bytes = 0
    for i = 1, count do
      local value = select(i, ...)
      if type(value) == "string" then bytes = bytes + #value end
    end
    if bytes > MAX_QUOTED_BYTES then
      error("format: the values have " .. bytes .. " bytes, " .. MAX_QUOTED_BYTES .. " are allowed with %q", 2)
    end
  end
  check_time()
  return format(template, ...)
end

local safe_table = copy_of(table, "pack", "unpack")

function safe_table.concat(list, separator, first, last)
  first = first or 1
  if last == nil and type(list) == "table" then last = #list end
  if mathtype(first) ~= "integer" or mathtype(last) ~= "integer" or last - first < MAX_JOINED or first > last then
    return concat(list, separator, first, last)
  end
  local parts, n = {}, 0
  for from = first, last, MAX_JOINED do
    check_time()
    n = n + 1
    parts[n] = concat(list, separator, from, last - from < MAX_JOINED and last or from + MAX_JOINED - 1)
  end
  return safe_table.concat(parts, separator)
end

local function check_list(list, name)
  if type(list) ~= "table" then error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(list) .. ")", 3) end
  if #list > MAX_LIST then error(name .. ": the list has " .. #list .. " items, " .. MAX_LIST .. " are allowed", 3) end
  if #list > LONG_LIST then check_time() end
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

-- A merge sort: its cost does not depend on the answers of the comparison.
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
  lift_memory_limit()
  local ok, value = pcall(get_config, key)
  restore_memory_limit()
  if not ok then error("fila.get: the configuration cannot be read", 2) end
  return value
end

local safe_math = copy_of(math, "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max",
  "maxinteger", "min", "mininteger", "modf", "pi", "rad", "random", "randomseed", "sin", "sqrt", "tan", "tointeger", "type", "ult")
local safe_utf8 = copy_of(utf8, "char", "charpattern", "codepoint", "codes", "len", "offset")

local builtins = {
  assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = safe_pcall, select = select,
  tonumber = tonumber, tostring = tostring, type = type, _VERSION = _VERSION,
  fila = read_only_table({ get = get }), math = read_only_table(safe_math), string = read_only_table(safe_string),
  table = read_only_table(safe_table), utf8 = read_only_table(safe_utf8),
}

local function assign(environment, name, value)
  if builtins[name] ~= nil then error(tostring(name) .. " is read-only", 2) end
  rawset(environment, name, value)
end

local environment = setmetatable({}, { __index = builtins, __newindex = assign, __metatable = false })

local strings = getmetatable("")
strings.__index = safe_string
strings.__metatable = false

-- The real globals, and access to Python with them, are not needed any more.
local globals = _G
for name in next, globals do globals[name] = nil end

local on_enqueue, on_failure

local function read_only_headers(headers)
  return setmetatable({}, { __index = headers, __newindex = read_only, __pairs = pairs_of, __metatable = false })
end

local function many_headers(...)
  local headers, all = {}, { ... }
  for i = 1, #all, 2 do headers[all[i]] = all[i + 1] end
  return read_only_headers(headers)
end

-- The value as an integer if it is a whole number from `low` to `high`, else nil.
local function integer_from(value, low, high)
  if mathtype(value) == "float" then value = tointeger(value) end
  if mathtype(value) == "integer" and value >= low and value <= high then return value end
  return nil
end

local function out_of_range(name, low, high)
  return bad_return(name .. " must be a whole number from " .. low .. " to " .. high)
end

local function call_on_enqueue(payload_size, headers)
  local message = { headers = headers, payload_size = payload_size, queue = queue }
  enter()
  local ok, answer = xpcall(on_enqueue, with_location, message)
  in_script = false
  if not ok then return failure(answer) end
  if type(answer) ~= "table" then return bad_return("on_enqueue must return a table, not a " .. type(answer)) end
  local key, weight, keys = answer.fairness_key, answer.weight, answer.throttle_keys
  local cost, priority, delay = answer.cost, answer.priority, answer.delay_ms
  if key == "" then
    key = nil
  elseif key ~= nil and (type(key) ~= "string" or #key > max_key_bytes) then
    return bad_return("fairness_key must be a string of at most " .. max_key_bytes .. " bytes")
  end
  if weight == nil then
    weight = 1
  else
    weight = integer_from(weight, 1, max_weight)
    if weight == nil then return out_of_range("weight", 1, max_weight) end
  end
  if cost == nil then
    cost = 1
  else
    cost = integer_from(cost, 1, max_cost)
    if cost == nil then return out_of_range("cost", 1, max_cost) end
  end
  if priority ~= nil then
    priority = integer_from(priority, 0, max_priority)
    if priority == nil then return out_of_range("priority", 0, max_priority) end
  end
  if delay ~= nil then
    delay = integer_from(delay, 0, max_delay_ms)
    if delay == nil then return out_of_range("delay_ms", 0, max_delay_ms) end
  end
  if keys == nil then return key, weight, cost, priority, delay end
  if type(keys) ~= "table" then return bad_return("throttle_keys must be a list of strings") end
  local n = #keys
  if n > max_throttle_keys then return bad_return("there are " .. n .. " throttle_keys, " .. max_throttle_keys .. " are allowed") end
  if n == 0 and next(keys) ~= nil then return bad_return("throttle_keys must be a list of strings") end
  for i = 1, n do
    local each = keys[i]
    if type(each) ~= "string" or each == "" or #each > max_key_bytes then
      return bad_return("each of throttle_keys must be a string of 1 to " .. max_key_bytes .. " bytes")
    end
  end
  return key, weight, cost, priority, delay, unpack(keys, 1, n)
end

-- Two entry points: a function with variable arguments is slower, and a constructor with named keys allocates a table of the
-- right size at once.
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
  return call_on_enqueue(payload_size, read_only_headers(headers or {}))
end

local function enqueue_many(payload_size, ...)
  return call_on_enqueue(payload_size, many_headers(...))
end

local function call_on_failure(id, attempts, problem, ...)
  local message = { headers = many_headers(...), id = id, attempts = attempts, queue = queue, error = problem }
  enter()
  local ok, answer = xpcall(on_failure, with_location, message, problem)
  in_script = false
  if not ok then return failure(answer) end
  if type(answer) ~= "table" then return bad_return("on_failure must return a table, not a " .. type(answer)) end
  local action, delay = answer.action, answer.delay_ms
  if action ~= nil and action ~= "retry" and action ~= "dlq" then return bad_return('action must be "retry" or "dlq"') end
  if delay ~= nil then
    delay = integer_from(delay, 0, max_delay_ms)
    if delay == nil then return out_of_range("delay_ms", 0, max_delay_ms) end
  end
  return true, action == "dlq", delay
end

-- A reader for `load` that returns the script in pieces and fails when compiling exceeds its time limit.
local function piece_reader(source)
  local start, at = clock(), 1
  return function()
    if clock() - start > compile_ns then
      killed = compile_text
      error(killed, 0)
    end
    local piece = sub(source, at, at + COMPILE_PIECE_BYTES - 1)
    at = at + COMPILE_PIECE_BYTES
    return piece
  end
end

-- Compiles and runs the script. Returns which hooks it defines, or what is wrong with it.
local function define(source)
  local chunk, problem = load(piece_reader(source), SCRIPT, "t", environment)
  if chunk == nil then return failure(problem) end
  local ok
  enter()
  ok, problem = xpcall(chunk, with_location)
  in_script = false
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

-- A script uses little memory, and most of what a call allocates is garbage after it. A collector that lets memory double
-- keeps nearly all scripts below SMALL_KB.
collectgarbage("incremental", 200)
small = collectgarbage("count") + SMALL_KB
large = small + LARGE_KB
check_every(stride)
return define, enqueue_few, enqueue_many, call_on_failure, collect
