-- One step of a circuit breaker that many processes share. The rules are those of fila/jobs/breaker.py, line by line, and
-- a property test holds the two equal.
--
-- KEYS[1]  hash: state, epoch, failures, rate_limits, until, probes, successes. Gone a day after it was last used.
-- ARGV     op, now in milliseconds (0: this server's clock), epoch, wait, cooldown (milliseconds),
--          failure threshold, rate limit threshold, probe count
-- Answers  {allowed, state, epoch, milliseconds to wait, changed}

local key, op = KEYS[1], ARGV[1]
local reported, asked_wait, cooldown = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local max_failures, max_rate_limits, probe_count = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

local found = redis.call('HMGET', key, 'state', 'epoch', 'failures', 'rate_limits', 'until', 'probes', 'successes')
local state, epoch = found[1] or 'closed', tonumber(found[2] or 0)
local failures, rate_limits = tonumber(found[3] or 0), tonumber(found[4] or 0)
local until_, probes, successes = tonumber(found[5] or 0), tonumber(found[6] or 0), tonumber(found[7] or 0)
local before, allowed, wait = state, 1, 0

local function enter(new_state, new_until)
    state, epoch, until_ = new_state, epoch + 1, new_until
    probes, successes = 0, 0
end

if op == 'ask' then
    if state ~= 'closed' then
        if now >= until_ then
            enter('half_open', now + cooldown)
            failures, rate_limits, probes = 0, 0, 1
        elseif state == 'half_open' and probes < probe_count then
            probes = probes + 1
        else
            allowed, wait = 0, until_ - now
        end
    end
elseif reported == epoch and state ~= 'open' then
    local too_many = false
    if op == 'release' then
        probes = math.max(0, probes - 1)
    elseif op == 'success' then
        if state == 'closed' then
            failures, rate_limits = 0, 0
        else
            successes = successes + 1
            if successes >= probe_count then
                enter('closed', 0)
                failures, rate_limits = 0, 0
            end
        end
    elseif op == 'failure' then
        failures = failures + 1
        too_many = failures >= max_failures or state == 'half_open'
    else
        rate_limits = rate_limits + 1
        too_many = rate_limits >= max_rate_limits or state == 'half_open'
    end
    if too_many then
        enter('open', now + math.max(cooldown, asked_wait))
    end
end

redis.call('HMSET', key, 'state', state, 'epoch', text(epoch), 'failures', text(failures),
    'rate_limits', text(rate_limits), 'until', text(until_), 'probes', text(probes), 'successes', text(successes))
redis.call('PEXPIRE', key, text(24 * 60 * 60 * 1000 + cooldown + asked_wait))
return { allowed, state, text(epoch), text(wait), state ~= before and 1 or 0 }
