-- Asks one node that voted with a lower counter to accept the token: only while its lock is the owner's, and only if
-- the counter moves up to exactly the token by this very step. So each counter takes each value at most once.
--
-- KEYS[1] record of the name   KEYS[2] record of the node
-- ARGV[1] run id, ARGV[2] longest lease, as for acquire   ARGV[3] owner   ARGV[4] token   ARGV[5] rememberMs
--
-- Returns {verdict, s, µs}: "accepted" or "refused".
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local node = redis.call("HMGET", KEYS[2], "run", "ttl", "high")
local record = redis.call("GET", KEYS[1])
if not record or (ARGV[1] ~= "" and (node[1] ~= ARGV[1] or node[2] ~= ARGV[2])) then
  return { "refused", time[1], time[2] }
end

local counter, expiry, rest = string.match(record, "^(%d+)|(%d+)|(.*)$")
local owner = string.match(rest, "^%d+|([^|]*)|")
local token = tonumber(ARGV[4])
local left = tonumber(expiry) - now_ms
if owner ~= ARGV[3] or left <= 0 or tonumber(counter) >= token or token > 9007199254740991 then
  return { "refused", time[1], time[2] }
end
redis.call("SET", KEYS[1], ARGV[4] .. "|" .. expiry .. "|" .. rest, "PX", string.format("%.0f", left + ARGV[5]))
if token > tonumber(node[3] or 0) then redis.call("HSET", KEYS[2], "high", ARGV[4]) end
return { "accepted", time[1], time[2] }
