-- Each tenant has its own fair share. Paying tenants have a larger one, which an operator can change at runtime
-- by the configuration key "tier.gold" with the value "8".
function on_enqueue(msg)
  local tier = msg.headers.tier or "free"
  return {
    fairness_key = msg.headers.tenant_id,
    weight = tonumber(fila.get("tier." .. tier)) or 1,
  }
end
