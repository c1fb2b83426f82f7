-- What one node knows of a name.
--
-- KEYS[1] record of the name   KEYS[2] waiting processes of the name
--
-- Returns {"ok", s, µs, record or "", bell, announcement, bell, announcement …}; see acquire.lua and announce.lua.
local time = redis.call("TIME")
local reply = { "ok", time[1], time[2], redis.call("GET", KEYS[1]) or "" }
for _, field in ipairs(redis.call("HGETALL", KEYS[2])) do reply[#reply + 1] = field end
return reply
