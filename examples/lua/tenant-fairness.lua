-- Each tenant gets a fair share. Tenants of a paid tier get a larger one. An operator can change it at runtime, for
-- example by the configuration key "tier.gold" with the value "8".
function on_enqueue(msg)
  local tier = msg.headers.tier or "free"
  return {
    fairness_key = msg.headers.tenant_id,
    weight = tonumber(fila.get("tier." .. tier)) or 1,
  }
end
