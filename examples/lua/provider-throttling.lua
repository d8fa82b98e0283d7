-- Limit the calls to each provider: for the whole account, and for each region of it. An operator sets the rates at
-- runtime by configuration keys, for example "throttle.provider:aws" with the value "rate=50,burst=100".
function on_enqueue(msg)
  local provider = "provider:" .. (msg.headers.provider or "unknown")
  local keys = { provider }
  if msg.headers.region then
    keys[2] = provider .. ":" .. msg.headers.region
  end
  return { fairness_key = msg.headers.tenant_id, throttle_keys = keys }
end
