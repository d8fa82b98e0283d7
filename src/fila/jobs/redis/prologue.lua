-- What each script of this folder begins with; `Script` puts it in front. ARGV[2] of all of them is the time in
-- milliseconds since the epoch; 0 means this server's clock.

local now = tonumber(ARGV[2])
if now == 0 then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function text(number)
    return string.format('%.0f', number)
end

