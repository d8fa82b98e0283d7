-- Priority by kind of work: interactive work goes first, exports wait a minute and go last, the rest is normal.
-- The kind is the part before the slash of a header such as "export/customers.csv".
local ROUTES = {
  interactive = { priority = 0 },
  export = { priority = 10, delay_ms = 60 * 1000, cost = 5 },
}

function on_enqueue(msg)
  local kind = (msg.headers.kind or ""):match("^(%w+)/?")
  local route = ROUTES[kind] or { priority = 5 }
  return {
    fairness_key = msg.headers.tenant_id,
    priority = route.priority,
    delay_ms = route.delay_ms,
    cost = route.cost,
  }
end
