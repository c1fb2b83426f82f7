-- Asks one node for its vote: the lock is set for the owner unless somebody else's lease is running there.
--
-- KEYS[1] record of the name   KEYS[2] record of the node
-- ARGV[1] run id of this server as learned on this connection; "" with the restart guard off
-- ARGV[2] the deployment's longest lease, ms
-- ARGV[3] owner, "<bell>.<secret>"
-- ARGV[4] lease, ms   ARGV[5] proposed counter   ARGV[6] rememberMs   ARGV[7] client, JSON
--
-- Returns {verdict, s, µs} and then
--   "vote":    the counter, now raised
--   "busy":    the counter, ms left of the other lease, bell of its owner
--   "foreign": nothing; this incarnation of the node is not admitted (or under other terms) and has no vote
--
-- The record of a name is "counter|expiryMs|sinceMs|owner|evictedOwners|client" and outlives its lease by rememberMs.
-- A name that was forgotten starts at the node's floor: the highest counter of any name when the floor was last
-- moved, which is never longer ago than a forgotten name was last used.
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local node = redis.call("HMGET", KEYS[2], "run", "ttl", "high", "floor", "floor_at")
if ARGV[1] ~= "" and (node[1] ~= ARGV[1] or node[2] ~= ARGV[2]) then
  return { "foreign", time[1], time[2] }
end

local counter, expiry, since, owner, evicted = "0", "0", "0", "", ""
local record = redis.call("GET", KEYS[1])
if record then
  counter, expiry, since, owner, evicted = string.match(record, "^(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|")
end
counter = tonumber(counter)
local left = tonumber(expiry) - now_ms
if owner ~= "" and owner ~= ARGV[3] and left > 0 then
  return { "busy", time[1], time[2], counter, left, string.match(owner, "^[^.]*") }
end

local high, floor, floor_at = tonumber(node[3] or 0), tonumber(node[4] or 0), tonumber(node[5] or 0)
local remember_ms = tonumber(ARGV[6])
if now_ms < floor_at or now_ms - floor_at >= remember_ms then
  floor = high
  redis.call("HSET", KEYS[2], "floor", string.format("%.0f", high), "floor_at", string.format("%.0f", now_ms))
end

-- A proposal more than an hour ahead of this node's clock comes from a wrong clock: it must not drag the counter along.
local proposal = tonumber(ARGV[5])
counter = math.max(counter, floor) + 1
if proposal > counter and proposal <= (now_ms + 3600000) * 1000 then counter = proposal end
if counter > 9007199254740991 then return redis.error_reply("ERR the counter of this lock has reached its end") end

local lease_ms = tonumber(ARGV[4])
if owner ~= ARGV[3] then since = string.format("%.0f", now_ms) end
local text = string.format("%.0f", counter)
expiry = string.format("%.0f", now_ms + lease_ms)
redis.call("SET", KEYS[1], text .. "|" .. expiry .. "|" .. since .. "|" .. ARGV[3] .. "|" .. evicted .. "|" .. ARGV[7],
  "PX", string.format("%.0f", lease_ms + remember_ms))
if counter > high then redis.call("HSET", KEYS[2], "high", text) end
return { "vote", time[1], time[2], counter }
