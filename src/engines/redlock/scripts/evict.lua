-- Ends the lock that holds a name with a token, by hand. Its owner is remembered, so that its next renewal learns why.
--
-- KEYS[1] record of the name   KEYS[2] waiting processes of the name
-- ARGV[1] token   ARGV[2] rememberMs   ARGV[3] channel prefix of bells   ARGV[4] name
--
-- Returns {1 or 0, s, µs}: whether it was there. Rings "evicted|0|<name>" for its owner and "free|…" for who waits.
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local record = redis.call("GET", KEYS[1])
if not record then return { 0, time[1], time[2] } end
local counter, expiry, owner, evicted = string.match(record, "^(%d+)|(%d+)|%d+|([^|]*)|([^|]*)|")
if counter ~= ARGV[1] or owner == "" or tonumber(expiry) <= now_ms then return { 0, time[1], time[2] } end
-- Earlier ones may not have heard of it yet: without their names here their renewal would set the lock again.
local owners = { owner }
for earlier in string.gmatch(evicted, "[^ ]+") do
  if #owners < 8 then owners[#owners + 1] = earlier end
end
redis.call("SET", KEYS[1], counter .. "|0|0||" .. table.concat(owners, " ") .. "|", "PX", ARGV[2])
redis.call("PUBLISH", ARGV[3] .. string.match(owner, "^[^.]*"), "evicted|0|" .. ARGV[4])
local waiting = redis.call("HKEYS", KEYS[2])
for _, bell in ipairs(waiting) do redis.call("PUBLISH", ARGV[3] .. bell, "free|" .. #waiting .. "|" .. ARGV[4]) end
return { 1, time[1], time[2] }
