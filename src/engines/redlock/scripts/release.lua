-- Takes back the owner's vote on one node. Harmless when it has none: only the owner's own lock is removed.
--
-- KEYS[1] record of the name   KEYS[2] waiting processes of the name
-- ARGV[1] owner   ARGV[2] rememberMs   ARGV[3] channel prefix of bells   ARGV[4] name   ARGV[5] "1": ring
--
-- Returns {1 or 0, s, µs}: whether there was one. Rings "free|<how many are rung>|<name>" for each waiting process.
local time = redis.call("TIME")
local record = redis.call("GET", KEYS[1])
if not record then return { 0, time[1], time[2] } end
local counter, owner, evicted = string.match(record, "^(%d+)|%d+|%d+|([^|]*)|([^|]*)|")
if owner ~= ARGV[1] then return { 0, time[1], time[2] } end
redis.call("SET", KEYS[1], counter .. "|0|0||" .. evicted .. "|", "PX", ARGV[2])

if ARGV[5] == "1" then
  local waiting = redis.call("HGETALL", KEYS[2])
  local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local bells = {}
  for index = 1, #waiting, 2 do
    if tonumber(string.match(waiting[index + 1], "^(%d+)|")) > now_ms then bells[#bells + 1] = waiting[index] end
  end
  for _, bell in ipairs(bells) do redis.call("PUBLISH", ARGV[3] .. bell, "free|" .. #bells .. "|" .. ARGV[4]) end
end
return { 1, time[1], time[2] }
