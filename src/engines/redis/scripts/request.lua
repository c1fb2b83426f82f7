-- Adds requests, unless they are there already, and answers the state of each; renews them in any case.
--
-- KEYS[n]       the names' keys (one slot in a Cluster)
-- ARGV[1]       the bell's channel, a space, the client's description: the same for all
-- ARGV[6n-4..]  owner, TTL in ms once held, TTL in ms while pending, minHold in ms, limit (0: exclusive), and 'w' wait,
--               'n' do not wait, 's' steal
-- Returns       for each the token (held), 'p' .. recheck in ms (pending) or 'b' (busy); then bells for the caller's
--               process. A lone answer stands for itself.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local answers, others = {}, nil

for n = 1, #KEYS do
  local key, at = KEYS[n], 6 * n - 4
  local state = redis.call('GET', key)
  if not state or string.byte(state) == 45 then
    -- Nobody is there: the whole state is one string.
    local token = now
    if state then
      local last = struct.unpack('<d', state, 2)
      if token <= last then token = last + 1 end
    end
    assert(token < 9007199254740991, 'the token would not be exact any more')
    local owner, ttl, hold = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 3])
    local record = struct.pack('<dddddBc0', token, now + ttl * 1000, now, hold, tonumber(ARGV[at + 4]), #owner, owner)
    redis.call('SET', key, '+' .. record .. ARGV[1], 'PX', math.max(ttl, hold) + REMEMBER_MS)
    answers[n] = token
  else
    others = others or {}
    others[#others + 1] = n
  end
end
if not others then
  if #answers == 1 then return answers[1] end
  return answers
end

local own = string.match(ARGV[1], '^%S+')
-- include: queue

local function request(key, owner, ttl, pendingTtl, hold, limit, how)
  open(key, call('GET', key))
  drop()

  local present = get(owner)
  if present then
    local answer = keep(owner, present, ttl, pendingTtl)
    save()
    return answer
  end

  if how == 's' then
    local list = all()
    for n = 1, #list, 2 do
      if list[n + 1].token > 0 then punish(list[n], list[n + 1], 's') end
    end
    if q.spilled and call('LLEN', q.p) == 0 then q.spilled = nil end
  end

  local r = { token = 0, ends = now + pendingTtl * 1000, since = now, hold = hold, limit = limit, meta = ARGV[1] }
  local answer
  if joins(limit) and (how == 's' or not q.spilled or call('LLEN', q.p) == 0) then
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
  return answer
end

for _, n in ipairs(others) do
  local at = 6 * n - 4
  local ttl, pendingTtl, hold, limit =
    tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  answers[n] = request(KEYS[n], ARGV[at], ttl, pendingTtl, hold, limit, ARGV[at + 5])
end
return reply(answers)
