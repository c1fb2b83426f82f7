-- Gives this incarnation of a node its vote, with every counter at the floor or above.
--
-- KEYS[1] record of the node
-- ARGV[1] run id as learned on this connection, so that an incarnation in between can never be meant
-- ARGV[2] longest lease of the deployment, ms   ARGV[3] number of nodes   ARGV[4] floor: highest counter of a quorum
--
-- Returns {1, s, µs}, or 0 for 1 when it was admitted already.
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local node = redis.call("HMGET", KEYS[1], "run", "high")
if node[1] == ARGV[1] then return { 0, time[1], time[2] } end
local high = string.format("%.0f", math.max(tonumber(node[2] or 0), tonumber(ARGV[4])))
redis.call("HSET", KEYS[1], "run", ARGV[1], "ttl", ARGV[2], "nodes", ARGV[3], "high", high, "floor", high,
  "floor_at", string.format("%.0f", now_ms))
return { 1, time[1], time[2] }
