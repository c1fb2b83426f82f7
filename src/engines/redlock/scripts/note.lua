-- Writes down on an admitted node that another one was seen in a new incarnation, and tells how long it is still to
-- wait for its vote. The first who sees it starts the wait; whoever comes later finds it running, or over.
--
-- KEYS[1] the running wait   KEYS[2] the mark that it was begun
-- ARGV[1] the whole wait, ms   ARGV[2] how long the mark stays, ms
--
-- Returns {"ok", s, µs, ms left}.
local time = redis.call("TIME")
if redis.call("SET", KEYS[2], "1", "NX", "PX", ARGV[2]) then
  redis.call("SET", KEYS[1], "1", "PX", ARGV[1])
  return { "ok", time[1], time[2], tonumber(ARGV[1]) }
end
return { "ok", time[1], time[2], math.max(redis.call("PTTL", KEYS[1]), 0) }
