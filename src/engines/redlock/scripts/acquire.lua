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
-- moved, which is never longer ago than a forgotten name was last used. What stands as the highest is a little more than
-- any counter, so that most votes need not write it: counters are microseconds where clocks are right, this is a second.
local LAST, HEADROOM = 9007199254740991, 1000000
local call = redis.call
local time = call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local node = call("HMGET", KEYS[2], "run", "ttl", "high", "floor", "floor_at")
if ARGV[1] ~= "" and (node[1] ~= ARGV[1] or node[2] ~= ARGV[2]) then
  return { "foreign", time[1], time[2] }
end

local counter, expiry, since, owner, evicted = 0, 0, "0", "", ""
local record = call("GET", KEYS[1])
if record then
  counter, expiry, since, owner, evicted = string.match(record, "^(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|")
  counter = tonumber(counter)
  local left = expiry - now_ms
  if owner ~= "" and owner ~= ARGV[3] and left > 0 then
    return { "busy", time[1], time[2], counter, left, string.match(owner, "^[^.]*") }
  end
end

local high, floor, floor_at = tonumber(node[3] or 0), tonumber(node[4] or 0), tonumber(node[5] or 0)
local lease_ms, remember_ms = tonumber(ARGV[4]), tonumber(ARGV[6])
if now_ms < floor_at or now_ms - floor_at >= remember_ms then
  floor = high
  call("HSET", KEYS[2], "floor", string.format("%.0f", high), "floor_at", string.format("%.0f", now_ms))
end

-- A proposal more than an hour ahead of this node's clock comes from a wrong clock: it must not drag the counter along.
local proposal, text = tonumber(ARGV[5]), ARGV[5]
if floor > counter then counter = floor end
if proposal > counter and proposal <= (now_ms + 3600000) * 1000 then
  counter = proposal
else
  counter = counter + 1
  text = string.format("%.0f", counter)
end
if counter > LAST then return redis.error_reply("ERR the counter of this lock has reached its end") end

if owner ~= ARGV[3] then since = now_ms end
-- Milliseconds have no more digits than Lua writes of a number in a text (14); counters have more.
call("SET", KEYS[1], text .. "|" .. now_ms + lease_ms .. "|" .. since .. "|" .. ARGV[3] .. "|" .. evicted .. "|" .. ARGV[7],
  "PX", lease_ms + remember_ms .. "")
if counter > high then
  call("HSET", KEYS[2], "high", string.format("%.0f", math.min(counter + HEADROOM, LAST)))
end
return { "vote", time[1], time[2], counter }
