-- string.find, match, gmatch and gsub for untrusted scripts.
--
-- Rules:
-- * Lua's own matcher runs in C, where no count hook runs, and takes exponential time for some patterns. It is used only
--   where `cheap` proves that it needs few steps for a subject of this length.
-- * Otherwise `match` below does the work: the same matcher, written in Lua, so that the time limit can end it.
-- * Nothing here keeps a reference to a value of the script, except for the bounded cache of pattern costs.

local raw = ...
local byte, char, find, gsub, sub, concat = raw.byte, raw.char, raw.find, raw.gsub, raw.sub, raw.concat
local error, type, tostring, tointeger, unpack = raw.error, raw.type, raw.tostring, raw.tointeger, raw.unpack

-- Steps of the C matcher that one call may take: about a millisecond.
local MAX_STEPS = 1000000
-- The cache of pattern costs: how many patterns it holds, and how long each may be.
local MAX_CACHED, MAX_CACHED_BYTES = 32, 100
local MAX_CAPTURES = 32

local SINGLE, OPEN, POSITION, CLOSE, BALANCE, FRONTIER, BACK, FINISH = 1, 2, 3, 4, 5, 6, 7, 8
local UNFINISHED, POSITION_LENGTH = -1, -2

local function text(value, number, name)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  error("bad argument #" .. number .. " to '" .. name .. "' (string expected, got " .. type(value) .. ")", 3)
end

-- Where a search starts: from 1 to #s + 1, or nil if that is past the end.
local function start(init, size, name)
  if init == nil then return 1 end
  local at = tointeger(init)
  if at == nil then error("bad argument #3 to '" .. name .. "' (number expected)", 3) end
  if at < 0 then at = size + at + 1 end
  if at < 1 then at = 1 end
  if at > size + 1 then return nil end
  return at
end

-- One past the end of the single character class that starts at `i`.
local function class_end(p, i)
  local c = byte(p, i)
  if c == 37 then -- %
    if i == #p then error("malformed pattern (ends with '%')", 0) end
    return i + 2
  end
  if c ~= 91 then return i + 1 end -- not [
  i = i + 1
  if byte(p, i) == 94 then i = i + 1 end
  repeat -- look for a ']'; the first character may be one
    c = byte(p, i)
    if c == nil then error("malformed pattern (missing ']')", 0) end
    i = i + 1
    if c == 37 then
      if i > #p then error("malformed pattern (missing ']')", 0) end
      i = i + 1
    end
  until byte(p, i) == 93
  return i + 1
end

-- The pattern as a list of items, and whether it is anchored.
local function parse(p)
  local items, n, i = {}, 0, 1
  local anchored = byte(p, 1) == 94
  if anchored then i = 2 end
  while i <= #p do
    local c, d = byte(p, i, i + 1)
    local item
    if c == 40 then -- (
      if d == 41 then item, i = { op = POSITION }, i + 2 else item, i = { op = OPEN }, i + 1 end
    elseif c == 41 then
      item, i = { op = CLOSE }, i + 1
    elseif c == 36 and i == #p then
      item, i = { op = FINISH }, i + 1
    elseif c == 37 and d == 98 then -- %b
      local opening, closing = byte(p, i + 2, i + 3)
      if closing == nil then error("malformed pattern (missing arguments to '%b')", 0) end
      item, i = { op = BALANCE, opening = opening, closing = closing }, i + 4
    elseif c == 37 and d == 102 then -- %f
      if byte(p, i + 2) ~= 91 then error("missing '[' after '%f' in pattern", 0) end
      local stop = class_end(p, i + 2)
      item, i = { op = FRONTIER, class = sub(p, i + 2, stop - 1) }, stop
    elseif c == 37 and d and d >= 48 and d <= 57 then
      item, i = { op = BACK, capture = d - 48 }, i + 2
    else
      local stop = class_end(p, i)
      item = { op = SINGLE }
      if c == 37 or c == 91 then
        item.class = sub(p, i, stop - 1)
        -- An escaped character that is not a letter stands for itself.
        if c == 37 and not find(char(d), "%a") then item.byte = d end
      elseif c ~= 46 then
        item.byte = c
      end
      local quantifier = byte(p, stop)
      if quantifier == 42 or quantifier == 43 or quantifier == 45 or quantifier == 63 then
        item.quantifier, stop = quantifier, stop + 1
      end
      i = stop
    end
    n = n + 1
    items[n] = item
  end
  return items, anchored
end

local function matches(item, c)
  if item.byte then return item.byte == c end
  if item.class then return find(char(c), item.class) ~= nil end
  return true
end

-- Whether the item after a repeated class cannot match that class, so that only one length can succeed (no backtracking).
local function unambiguous(items, i)
  local item = items[i]
  repeat
    i = i + 1
  until items[i] == nil or (items[i].op ~= OPEN and items[i].op ~= CLOSE and items[i].op ~= POSITION)
  local follower = items[i]
  if follower == nil or follower.op == FINISH then return true end
  return follower.op == SINGLE and follower.byte and not matches(item, follower.byte)
    and (follower.quantifier == nil or follower.quantifier == 43)
end

local costs, cost_count = {}, 0

-- An upper bound of the C matcher's steps for a subject of n bytes: base * (n + 1) ^ degree * (1 + walks * n).
local function cost_of(p)
  local cost = costs[p]
  if cost then return cost end
  local items, anchored = parse(p)
  cost = { base = #p + 1, degree = anchored and 0 or 1, walks = 0 }
  for i = 1, #items do
    local item = items[i]
    if item.op == BALANCE or item.op == BACK then
      cost.degree = cost.degree + 1
    elseif item.quantifier == 63 then
      cost.base = cost.base * 2.0
    elseif item.quantifier then
      if unambiguous(items, i) then cost.walks = cost.walks + 1 else cost.degree = cost.degree + 1 end
    end
  end
  if #p <= MAX_CACHED_BYTES then
    if cost_count >= MAX_CACHED then costs, cost_count = {}, 0 end
    costs[p], cost_count = cost, cost_count + 1
  end
  return cost
end

local function cheap(size, p)
  local cost = cost_of(p)
  return cost.base * (size + 1.0) ^ cost.degree * (1 + cost.walks * size) <= MAX_STEPS
end

local function new_match(s, p)
  local items, anchored = parse(p)
  return { s = s, size = #s, items = items, level = 0, from = {}, length = {} }, anchored
end

local match

local function repeated(m, item, at, i)
  local size, s, quantifier = m.size, m.s, item.quantifier
  if quantifier == 45 then -- shortest first
    while true do
      local stop = match(m, at, i + 1)
      if stop then return stop end
      if at > size or not matches(item, byte(s, at)) then return nil end
      at = at + 1
    end
  end
  local last = at
  while last <= size and matches(item, byte(s, last)) do last = last + 1 end
  if quantifier == 43 then at = at + 1 end
  for try = last, at, -1 do
    local stop = match(m, try, i + 1)
    if stop then return stop end
  end
  return nil
end

local function balanced(m, item, at)
  local s, depth = m.s, 1
  if at > m.size or byte(s, at) ~= item.opening then return nil end
  for i = at + 1, m.size do
    local c = byte(s, i)
    if c == item.closing then
      depth = depth - 1
      if depth == 0 then return i + 1 end
    elseif c == item.opening then
      depth = depth + 1
    end
  end
  return nil
end

local function back_reference(m, item, at)
  local capture = item.capture
  if capture < 1 or capture > m.level or m.length[capture] == UNFINISHED then
    error("invalid capture index %" .. capture, 0)
  end
  local length = m.length[capture]
  if length == POSITION_LENGTH then return nil end -- a position capture has no text to match again
  if m.size - at + 1 < length then return nil end
  local from = m.from[capture]
  if sub(m.s, from, from + length - 1) ~= sub(m.s, at, at + length - 1) then return nil end
  return at + length
end

local function opened(m, at, i, length)
  if m.level >= MAX_CAPTURES then error("too many captures", 0) end
  m.level = m.level + 1
  m.from[m.level], m.length[m.level] = at, length
  local stop = match(m, at, i + 1)
  if not stop then m.level = m.level - 1 end
  return stop
end

local function closed(m, at, i)
  local capture = m.level
  while capture > 0 and m.length[capture] ~= UNFINISHED do capture = capture - 1 end
  if capture == 0 then error("invalid pattern capture", 0) end
  m.length[capture] = at - m.from[capture]
  local stop = match(m, at, i + 1)
  if not stop then m.length[capture] = UNFINISHED end
  return stop
end

-- One past the end of what items from `i` on match at `at`, or nil.
function match(m, at, i)
  local items, s, size = m.items, m.s, m.size
  while true do
    local item = items[i]
    if item == nil then return at end
    local op = item.op
    if op == SINGLE then
      local quantifier = item.quantifier
      if quantifier == nil then
        if at > size or not matches(item, byte(s, at)) then return nil end
        at = at + 1
      elseif quantifier == 63 then
        if at <= size and matches(item, byte(s, at)) then
          local stop = match(m, at + 1, i + 1)
          if stop then return stop end
        end
      else
        return repeated(m, item, at, i)
      end
    elseif op == OPEN then
      return opened(m, at, i, UNFINISHED)
    elseif op == POSITION then
      return opened(m, at, i, POSITION_LENGTH)
    elseif op == CLOSE then
      return closed(m, at, i)
    elseif op == FINISH then
      if at ~= size + 1 then return nil end
    elseif op == FRONTIER then
      local before = at > 1 and byte(s, at - 1) or 0
      local after = at <= size and byte(s, at) or 0
      if matches(item, before) or not matches(item, after) then return nil end
    else
      at = (op == BALANCE and balanced or back_reference)(m, item, at)
      if at == nil then return nil end
    end
    i = i + 1
  end
end

local function capture(m, i, from, stop)
  if i > m.level then
    if i == 1 then return sub(m.s, from, stop - 1) end
    error("invalid capture index %" .. i, 0)
  end
  local length = m.length[i]
  if length == UNFINISHED then error("unfinished capture", 0) end
  if length == POSITION_LENGTH then return m.from[i] end
  return sub(m.s, m.from[i], m.from[i] + length - 1)
end

-- All captures, or the whole match if there are none and `whole` is set.
local function captures(m, from, stop, whole)
  local n = m.level
  if n == 0 and whole then n = 1 end
  local list = {}
  for i = 1, n do list[i] = capture(m, i, from, stop) end
  return unpack(list, 1, n)
end

local function search(m, anchored, at)
  repeat
    m.level = 0
    local stop = match(m, at, 1)
    if stop then return at, stop end
    at = at + 1
  until anchored or at > m.size + 1
  return nil
end

local function find_text(s, p, at)
  local first, length = byte(p, 1), #p
  if length == 0 then return at, at - 1 end
  for from = at, #s - length + 1 do
    if byte(s, from) == first then
      local i = 2
      while i <= length and byte(s, from + i - 1) == byte(p, i) do i = i + 1 end
      if i > length then return from, from + length - 1 end
    end
  end
  return nil
end

local safe = {}

function safe.find(s, p, init, plain)
  s, p = text(s, 1, "find"), text(p, 2, "find")
  local at = start(init, #s, "find")
  if at == nil then return nil end
  if plain or not find(p, "[%^%$%*%+%?%.%(%[%%%-]") then
    if (#s - at + 2.0) * (#p + 1) <= MAX_STEPS then return find(s, p, at, true) end
    return find_text(s, p, at)
  end
  if cheap(#s - at + 1, p) then return find(s, p, at) end
  local m, anchored = new_match(s, p)
  local from, stop = search(m, anchored, at)
  if from == nil then return nil end
  return from, stop - 1, captures(m, from, stop, false)
end

function safe.match(s, p, init)
  s, p = text(s, 1, "match"), text(p, 2, "match")
  local at = start(init, #s, "match")
  if at == nil then return nil end
  if cheap(#s - at + 1, p) then return raw.match(s, p, at) end
  local m, anchored = new_match(s, p)
  local from, stop = search(m, anchored, at)
  if from == nil then return nil end
  return captures(m, from, stop, true)
end

function safe.gmatch(s, p, init)
  s, p = text(s, 1, "gmatch"), text(p, 2, "gmatch")
  local at = start(init, #s, "gmatch") or #s + 2
  if byte(p, 1) == 94 then p = "%" .. p end -- no anchor here, as in Lua
  if cheap(#s, p) then return raw.gmatch(s, p, at) end
  local m, last = new_match(s, p), nil
  return function()
    while at <= m.size + 1 do
      m.level = 0
      local from, stop = at, match(m, at, 1)
      if stop and stop ~= last then
        at, last = stop, stop
        return captures(m, from, stop, true)
      end
      at = at + 1
    end
    return nil
  end
end

-- The replacement of a match; nil or false keeps the match.
local function replacement(m, repl, from, stop)
  local kind = type(repl)
  if kind == "function" then return (repl(captures(m, from, stop, true))) end
  if kind == "table" then return repl[capture(m, 1, from, stop)] end
  return (gsub(repl, "%%(.?)", function(c)
    if c == "%" then return "%" end
    if c == "0" then return sub(m.s, from, stop - 1) end
    if not find(c, "%d") then error("invalid use of '%' in replacement string", 0) end
    return capture(m, tointeger(byte(c) - 48), from, stop)
  end))
end

function safe.gsub(s, p, repl, max)
  s, p = text(s, 1, "gsub"), text(p, 2, "gsub")
  local kind = type(repl)
  if kind == "number" then repl = tostring(repl)
  elseif kind ~= "string" and kind ~= "table" and kind ~= "function" then
    error("bad argument #3 to 'gsub' (string/function/table expected, got " .. kind .. ")", 2)
  end
  max = max == nil and #s + 1 or tointeger(max) or error("bad argument #4 to 'gsub' (number expected)", 2)
  if cheap(#s, p) then return gsub(s, p, repl, max) end
  local m, anchored = new_match(s, p)
  local parts, at, count, last = {}, 1, 0, nil
  while count < max do
    m.level = 0
    local stop = match(m, at, 1)
    if stop and stop ~= last then
      count = count + 1
      local value = replacement(m, repl, at, stop)
      if not value then
        value = sub(s, at, stop - 1)
      elseif type(value) ~= "string" and type(value) ~= "number" then
        error("invalid replacement value (a " .. type(value) .. ")", 2)
      end
      parts[#parts + 1] = value
      at, last = stop, stop
    elseif at <= m.size then
      parts[#parts + 1] = sub(s, at, at)
      at = at + 1
    else
      break
    end
    if anchored then break end
  end
  parts[#parts + 1] = sub(s, at)
  return concat(parts), count
end

return safe
