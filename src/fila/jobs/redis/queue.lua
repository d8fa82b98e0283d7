-- The job queue in Redis. Every change of it is one call of this script, so each is done whole or not at all.
--
-- KEYS, in this order (names are those of the settings; the others are made from the first):
--   1 ready      sorted set   job id by priority * 2^44 + seq: the lowest is handed out next
--   2 scheduled  sorted set   job id by the time from which it is ready
--   3 jobs       hash         job id -> the job and what its producer said about it; opaque here
--   4 state      hash         job id -> "score ready_at attempt claim error": what changes while the job lives
--   5 claims     sorted set   job id by the time at which its claim ends
--   6 dead       sorted set   job id by the count of burials; the state's ready_at is then the time of its own
--   7 taken      sorted set   job id by time: jobs that were taken, but whose producer has not said yet that it knows.
--                             A producer that got no answer sends the job again, and it is not taken twice
--   8 meta       hash         seq, burials: the last numbers given; pulse: when a worker last asked for a job or
--                             extended a claim; hold_until: before this moment no claim counts as ended; probed:
--                             when a producer last asked whether this Redis can be used
--   9 wake       list         at most one token: who waits with BLPOP takes it, looks for a job, and watches over
--                             what is due next. Who leaves, with a job or without, passes it on
--
-- A job is in exactly one of ready, scheduled, claims and dead. Times are milliseconds since the epoch.
--
-- ARGV: command, now (0: this server's clock), then what the command needs. See each of them below.

local ready, scheduled, jobs, state, claims = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, taken, meta, wake = KEYS[6], KEYS[7], KEYS[8], KEYS[9]

local PRIORITY = 2 ^ 44
local FORGET_TAKEN_MS = 24 * 60 * 60 * 1000
local MAX_DEAD = 10000

local function read(id)
    local packed = redis.call('HGET', state, id)
    if not packed then
        return nil
    end
    local score, ready_at, attempt, claim, failure = packed:match('^(%S+) (%S+) (%S+) (%S+) (.*)$')
    return { score = score, ready_at = ready_at, attempt = attempt, claim = claim, failure = failure }
end

local function write(id, job)
    redis.call('HSET', state, id,
        job.score .. ' ' .. job.ready_at .. ' ' .. job.attempt .. ' ' .. job.claim .. ' ' .. job.failure)
end

local function wake_one()
    if redis.call('LLEN', wake) == 0 then
        redis.call('RPUSH', wake, '1')
    end
end

-- Make a job ready or scheduled, by its time. A job that is due before all others changes how long waiters wait, so one is woken.
local function insert(id, job)
    if tonumber(job.ready_at) <= now then
        redis.call('ZADD', ready, job.score, id)
        wake_one()
    else
        redis.call('ZADD', scheduled, job.ready_at, id)
        if redis.call('ZRANGE', scheduled, 0, 0)[1] == id then
            wake_one()
        end
    end
end

local function bury(id, job)
    job.ready_at = text(now)
    write(id, job)
    redis.call('ZADD', dead, redis.call('HINCRBY', meta, 'burials', 1), id)
    while redis.call('ZCARD', dead) > MAX_DEAD do
        local oldest = redis.call('ZPOPMIN', dead)[1]
        redis.call('HDEL', jobs, oldest)
        redis.call('HDEL', state, oldest)
    end
end

-- The state of a job that is claimed with this token; nil when it is not.
local function claimed_by(id, token)
    local job = read(id)
    if job and job.claim == token and redis.call('ZSCORE', claims, id) then
        return job
    end
    return nil
end

-- The same, and the claim is over: the caller says where the job goes.
local function end_claim(id, token)
    local job = claimed_by(id, token)
    if job then
        job.claim = '-'
        redis.call('ZREM', claims, id)
    end
    return job
end

local function promote()
    while true do
        local due = redis.call('ZRANGEBYSCORE', scheduled, '-inf', text(now), 'LIMIT', 0, 500)
        if #due == 0 then
            return
        end
        for _, id in ipairs(due) do
            redis.call('ZREM', scheduled, id)
            local job = read(id)
            if job then
                redis.call('ZADD', ready, job.score, id)
            end
        end
    end
end

-- Workers that wait ask for a job, and those that are busy extend their claims, more often than every half a lease. When
-- nobody did either for so long, this server was unavailable, and nobody could settle anything. Then all claims hold
-- for another lease: what was done meanwhile is settled by its worker and not done again by somebody else.
local function extend_claims_after_outage(lease, watch)
    if watch ~= '1' then
        return
    end
    local pulse = tonumber(redis.call('HGET', meta, 'pulse'))
    if pulse and now - pulse > lease / 2 then
        redis.call('HSET', meta, 'hold_until', text(now + lease))
    end
    redis.call('HSET', meta, 'pulse', text(now))
end

local function hold_until()
    return tonumber(redis.call('HGET', meta, 'hold_until')) or 0
end

local function reclaim()
    if now < hold_until() then
        return
    end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', claims, '-inf', text(now), 'LIMIT', 0, 500)) do
        redis.call('ZREM', claims, id)
        local job = read(id)
        if job then
            job.attempt = text(tonumber(job.attempt) + 1)
            job.claim = '-'
            job.ready_at = text(now)
            write(id, job)
            insert(id, job)
        end
    end
end

local commands = {}

-- add limit count id* (id priority delay attempt failure job)*
-- Takes jobs, all or none: none when more than `limit` would wait (0: no limit). The first `count` ids are jobs of which
-- the producer knows by now that they were taken. A job with a failure goes to the dead.
-- Answers {1, seq of each} or {0, depth}; the seq of a job that was taken before is 0.
function commands.add()
    local limit, known = tonumber(ARGV[3]), tonumber(ARGV[4])
    local first = 5 + known
    local count = (#ARGV - first + 1) / 6
    if limit > 0 then
        local depth = redis.call('ZCARD', ready) + redis.call('ZCARD', scheduled)
        if depth + count > limit then
            return { 0, depth }
        end
    end
    -- The first write of a script decides whether a Redis without memory refuses it, and one that frees memory is
    -- never refused: so what is forgotten comes last.
    local answer = { 1 }
    for n = first, #ARGV, 6 do
        local id, priority, delay = ARGV[n], tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2])
        local seq = 0
        if not redis.call('ZSCORE', taken, id) then
            seq = redis.call('HINCRBY', meta, 'seq', 1)
            local job = {
                score = text(priority * PRIORITY + seq),
                ready_at = text(now + delay),
                attempt = ARGV[n + 3],
                claim = '-',
                failure = ARGV[n + 4],
            }
            redis.call('HSET', jobs, id, ARGV[n + 5])
            if job.failure == '' then
                write(id, job)
                insert(id, job)
            else
                bury(id, job)
            end
            -- Not before it is inserted: a key of another type ends the script there, and the job is sent again.
            redis.call('ZADD', taken, text(now), id)
        end
        answer[#answer + 1] = seq
    end
    for n = 5, 4 + known do
        redis.call('ZREM', taken, ARGV[n])
    end
    redis.call('ZREMRANGEBYSCORE', taken, '-inf', text(now - FORGET_TAKEN_MS))
    return answer
end

-- claim lease token watch woken
-- Hands out the next job. `watch` 1: look for an outage. `woken` 1: the caller has the token of `wake`, which is passed on
-- with a job when others are left. Answers {1, id, score, ready_at, attempt, job}, or, when none is ready,
-- {0, milliseconds until something is due}, -1 when nothing ever will be.
function commands.claim()
    local lease = tonumber(ARGV[3])
    extend_claims_after_outage(lease, ARGV[5])
    reclaim()
    promote()
    while true do
        local id = redis.call('ZPOPMIN', ready)[1]
        if not id then
            break
        end
        local job, body = read(id), redis.call('HGET', jobs, id)
        if job and body then
            job.claim = ARGV[4]
            write(id, job)
            redis.call('ZADD', claims, text(now + lease), id)
            if redis.call('ZCARD', ready) > 0 or (ARGV[6] == '1' and redis.call('ZCARD', scheduled) > 0) then
                wake_one()
            end
            return { 1, id, job.score, job.ready_at, job.attempt, body }
        end
    end
    local due = tonumber(redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2])
    local ends = tonumber(redis.call('ZRANGE', claims, 0, 0, 'WITHSCORES')[2])
    if ends then
        ends = math.max(ends, hold_until())
        due = due and math.min(due, ends) or ends
    end
    return { 0, due and math.max(0, due - now) or -1 }
end

-- ack id token
function commands.ack()
    if not claimed_by(ARGV[3], ARGV[4]) then
        return 0
    end
    redis.call('ZREM', claims, ARGV[3])
    redis.call('HDEL', jobs, ARGV[3])
    redis.call('HDEL', state, ARGV[3])
    return 1
end

-- give id token delay attempt: back to the others.
function commands.give()
    local id, job = ARGV[3], end_claim(ARGV[3], ARGV[4])
    if not job then
        return 0
    end
    job.ready_at = text(now + tonumber(ARGV[5]))
    job.attempt = ARGV[6]
    write(id, job)
    insert(id, job)
    return 1
end

-- bury id token failure
function commands.bury()
    local id, job = ARGV[3], end_claim(ARGV[3], ARGV[4])
    if not job then
        return 0
    end
    job.failure = ARGV[5]
    bury(id, job)
    return 1
end

-- extend id token lease watch
function commands.extend()
    local lease = tonumber(ARGV[5])
    extend_claims_after_outage(lease, ARGV[6])
    if not claimed_by(ARGV[3], ARGV[4]) then
        return 0
    end
    redis.call('ZADD', claims, text(now + lease), ARGV[3])
    return 1
end

-- dead limit: answers (id, score, died, attempt, failure, job)*
function commands.dead()
    local answer = {}
    if tonumber(ARGV[3]) < 1 then
        return answer
    end
    for _, id in ipairs(redis.call('ZRANGE', dead, 0, tonumber(ARGV[3]) - 1)) do
        local job, body = read(id), redis.call('HGET', jobs, id)
        if job and body then
            for _, value in ipairs({ id, job.score, job.ready_at, job.attempt, job.failure, body }) do
                answer[#answer + 1] = value
            end
        end
    end
    return answer
end

-- redrive limit (-1: all): answers how many.
function commands.redrive()
    local limit, count = tonumber(ARGV[3]), 0
    while limit < 0 or count < limit do
        local id = redis.call('ZPOPMIN', dead)[1]
        if not id then
            break
        end
        local job = read(id)
        if job then
            job.attempt, job.failure, job.ready_at = '1', '', text(now)
            write(id, job)
            insert(id, job)
            count = count + 1
        end
    end
    return count
end

-- count: answers {ready, scheduled, claimed, dead}, with what is due counted as ready.
function commands.count()
    local due = redis.call('ZCOUNT', scheduled, '-inf', text(now))
    return {
        redis.call('ZCARD', ready) + due,
        redis.call('ZCARD', scheduled) - due,
        redis.call('ZCARD', claims),
        redis.call('ZCARD', dead),
    }
end

-- wake: pass the token on for a waiter that took it and cannot use it.
function commands.wake()
    wake_one()
    return 1
end

-- probe: can anything be written here?
function commands.probe()
    redis.call('HSET', meta, 'probed', text(now))
    return 1
end

-- purge
function commands.purge()
    for _, key in ipairs(KEYS) do
        redis.call('DEL', key)
    end
    return 1
end

return commands[ARGV[1]]()
