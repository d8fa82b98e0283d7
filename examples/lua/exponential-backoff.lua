-- Exponential backoff: wait 1 s, 2 s, 4 s and so on up to five minutes, with 20 % jitter so that messages that failed
-- together do not return together. After eight attempts, or at once for an error that a retry cannot fix, the message
-- becomes a dead letter.
local FIRST_MS, LONGEST_MS, MAX_ATTEMPTS = 1000, 5 * 60 * 1000, 8

function on_failure(msg)
  if msg.attempts >= MAX_ATTEMPTS or msg.error:find("invalid", 1, true) then
    return { action = "dlq" }
  end
  local delay = math.min(FIRST_MS * 2 ^ (msg.attempts - 1), LONGEST_MS)
  return { action = "retry", delay_ms = math.floor(delay * (0.8 + 0.4 * math.random())) }
end
