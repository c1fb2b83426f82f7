-- The owner leaves the queue: releases what it holds, or withdraws. Nothing happens when it is not there.
--
-- KEYS[1]  the name's key
-- ARGV[1]  owner       ARGV[2]  the caller's bell channel
-- ARGV[3]  '1': a minimum hold that is not over keeps the place; '0': it does not
-- Returns  0, and bells for the caller's process after it.

local state = redis.call('GET', KEYS[1])

-- It is the only one.
if state and string.byte(state) == 43 then
  local token, _, since, hold, _, owner = struct.unpack('<dddddBc0', state, 2)
  if owner ~= ARGV[1] then return 0 end
  if hold == 0 or ARGV[3] == '0' then
    redis.call('SET', KEYS[1], '-' .. struct.pack('<d', token), 'PX', REMEMBER_MS)
    return 0
  end
end
if not state or string.byte(state) == 45 then return 0 end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local own = ARGV[2]
-- include: queue

open(KEYS[1], state)
local owner = ARGV[1]
local r = get(owner)
if r then
  if r.token > 0 and ARGV[3] == '1' and r.since + r.hold * 1000 > now then
    disown(owner, r)
    q.ownerless = q.ownerless + 1
    tellHead()
  else
    remove(owner, r)
  end
end
drop()
advance()
save()
return reply(0)
