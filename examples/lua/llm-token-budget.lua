-- A language model has a budget of tokens a minute. The cost of a message is the number of tokens it will use, so one
-- throttle key holds the budget: 90,000 tokens a minute are the configuration key "throttle.llm:gpt-4o" with the value
-- "rate=1500,burst=90000". A request is estimated at four bytes a token, plus the longest answer it asks for. When the
-- provider answers "retry after N", the message waits N seconds.
function on_enqueue(msg)
  local answer = tonumber(msg.headers.max_tokens) or 500
  local tokens = math.ceil(msg.payload_size / 4) + math.floor(math.max(answer, 0))
  return {
    fairness_key = msg.headers.tenant_id,
    throttle_keys = { "llm:" .. (msg.headers.model or "default") },
    cost = math.max(1, math.min(tokens, 1000000)),
  }
end

function on_failure(msg)
  local seconds = tonumber(msg.error:match("retry after (%d+)"))
  if seconds then
    return { action = "retry", delay_ms = math.min(seconds, 3600) * 1000 }
  end
  if msg.attempts >= 5 then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 1000 * msg.attempts }
end
