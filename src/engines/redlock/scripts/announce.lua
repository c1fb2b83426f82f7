-- Tells one node which requests of this process wait for a name, so that whoever releases it rings us. Replaces what
-- this process announced before.
--
-- KEYS[1] record of the name   KEYS[2] waiting processes of the name
-- ARGV[1] our bell   ARGV[2] how long it stands, ms; "0": nobody waits any more   ARGV[3] who waits, JSON
-- ARGV[4] at most so many processes
--
-- Returns {"ok", s, µs, ms left of the lease that is in the way, bell of its owner}; 0 and "" when nothing is.
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call("HLEN", KEYS[2]) >= tonumber(ARGV[4]) then
  local waiting = redis.call("HGETALL", KEYS[2])
  for index = 1, #waiting, 2 do
    if tonumber(string.match(waiting[index + 1], "^(%d+)|")) <= now_ms then redis.call("HDEL", KEYS[2], waiting[index]) end
  end
end
if ARGV[2] == "0" then
  redis.call("HDEL", KEYS[2], ARGV[1])
elseif redis.call("HEXISTS", KEYS[2], ARGV[1]) == 1 or redis.call("HLEN", KEYS[2]) < tonumber(ARGV[4]) then
  redis.call("HSET", KEYS[2], ARGV[1], string.format("%.0f", now_ms + ARGV[2]) .. "|" .. ARGV[3])
  if redis.call("PTTL", KEYS[2]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[2], ARGV[2]) end
end

local record = redis.call("GET", KEYS[1])
if not record then return { "ok", time[1], time[2], 0, "" } end
local expiry, bell = string.match(record, "^%d+|(%d+)|%d+|([^|.]*)")
local left = tonumber(expiry) - now_ms
if bell == "" or left <= 0 then return { "ok", time[1], time[2], 0, "" } end
return { "ok", time[1], time[2], left, bell }
