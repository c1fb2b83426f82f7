-- Adds a request, unless it is there already, and answers its state; renews it in any case.
--
-- KEYS[1]  the name's key
-- ARGV[1]  owner              ARGV[2]  TTL in ms once held      ARGV[3]  TTL in ms while pending
-- ARGV[4]  minHold in ms      ARGV[5]  limit (0: exclusive)     ARGV[6]  'w' wait, 'n' do not wait, 's' steal
-- ARGV[7]  the bell's channel, a space, the client's description
-- Returns  the token (held), 'p' .. recheck in ms (pending) or 'b' (busy); bells for the caller's process after it.

local state = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Nobody is there: the whole state is one string.
if not state or string.byte(state) == 45 then
  local token = now
  if state then
    local last = struct.unpack('<d', state, 2)
    if token <= last then token = last + 1 end
  end
  assert(token < 9007199254740991, 'the token would not be exact any more')
  local ttl, hold = tonumber(ARGV[2]), tonumber(ARGV[4])
  local record = struct.pack('<dddddBc0', token, now + ttl * 1000, now, hold, tonumber(ARGV[5]), #ARGV[1], ARGV[1])
  redis.call('SET', KEYS[1], '+' .. record .. ARGV[7], 'PX', math.max(ttl, hold) + REMEMBER_MS)
  return token
end

local own = string.match(ARGV[7], '^%S+')
-- include: queue

local owner, ttl, pendingTtl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local limit, how = tonumber(ARGV[5]), ARGV[6]

open(KEYS[1], state)
drop()

local present = get(owner)
if present then
  local answer = keep(owner, present, ttl, pendingTtl)
  save()
  return reply(answer)
end

if how == 's' then
  local list = all()
  for n = 1, #list, 2 do
    if list[n + 1].token > 0 then punish(list[n], list[n + 1], 's') end
  end
  if q.spilled and call('LLEN', q.p) == 0 then q.spilled = nil end
end

local r = { token = 0, ends = now + pendingTtl * 1000, since = now, hold = tonumber(ARGV[4]), limit = limit, meta = ARGV[7] }
local free = joins(limit) and (how == 's' or not q.spilled or call('LLEN', q.p) == 0)
local answer
if free then
  r.ends = now + ttl * 1000
  grant(owner, r)
  answer = r.token
elseif how == 'n' then
  answer = 'b'
else
  push(owner, r)
  answer = 'p' .. recheck(limit)
end
save()
return reply(answer)
