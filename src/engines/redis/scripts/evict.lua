-- Ends the held request (or ownerless place) with this token.
--
-- KEYS[1]  the name's key
-- ARGV[1]  token       ARGV[2]  the caller's bell channel
-- Returns  1, or 0 when there is none; bells for the caller's process after it.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local own = ARGV[2]
-- include: queue

open(KEYS[1], call('GET', KEYS[1]))
drop()
local token, found = tonumber(ARGV[1]), 0
local list = all()
for n = 1, #list, 2 do
  if list[n + 1].token == token then
    punish(list[n], list[n + 1], 'e')
    found = 1
  end
end
advance()
save()
return reply({ found })
