-- The queue of one name, shared by all verbs (included where they say so). Times are microseconds of the server's clock.
--
-- Keys of a name, all in one slot; every script gets the first and derives the others from it:
--   KEY      string: '-' last token                    nobody is there, the token is remembered
--                    '+' record, owner                 one held request, nobody else: no other key exists
--                    '=' header of the queue           the other keys hold the requests
--   KEY:d    hash:   owner -> record                   every request; an ownerless place (minHold) as '!' .. token
--   KEY:q    list:   owners of the pending requests, in order
--   KEY:v    hash:   owner -> 's' | 'e'                who was stolen from or evicted, to tell them
--
-- A record is: token (0 while pending), end of the lease, since, minHold in ms, limit; then the bell's channel, a space
-- and the client's description. Limit 0 is exclusive, READERS is no limit. Held requests need no order among
-- themselves: their tokens have it.
--
-- The header: last token; how many are held, the smallest limit among them and how many have it; a time before which no
-- lease of a held request ends, the same for pending ones (both may be too early: then a look at all of them corrects
-- it); the time until which the keys live; how many places are ownerless.
--
-- From the including script: now, own (the caller's channel); REMEMBER_MS and PROBE stand before everything.

local call, pack, unpack, min, max = redis.call, struct.pack, struct.unpack, math.min, math.max
local FREE, LONE, QUEUE = 45, 43, 61
local NEVER = 9007199254740991
local MOST_PASSED_OVER = 32

local q
local events = {}

local function decode(record)
  local token, ends, since, hold, limit, at = unpack('<ddddd', record)
  return { token = token, ends = ends, since = since, hold = hold, limit = limit, meta = string.sub(record, at) }
end

local function encode(r)
  return pack('<ddddd', r.token, r.ends, r.since, r.hold, r.limit) .. r.meta
end

-- A place that a minimum hold keeps after its owner has gone: nothing rings there.
local function isOwnerless(r)
  return string.byte(r.meta) == 33
end

-- When a request stops to count: a held one not before its minimum hold is over.
local function endOf(r)
  if r.token == 0 then return r.ends end
  return max(r.ends, r.since + r.hold * 1000)
end

local function tally(r)
  if r.token == 0 then
    q.pendingEnd = min(q.pendingEnd, r.ends)
    return
  end
  q.held = q.held + 1
  if isOwnerless(r) then q.ownerless = q.ownerless + 1 end
  q.heldEnd = min(q.heldEnd, r.ends)
  if r.limit < q.limit then
    q.limit, q.least = r.limit, 1
  elseif r.limit == q.limit then
    q.least = q.least + 1
  end
end

local function open(key, state)
  q = {
    key = key, d = key .. ':d', p = key .. ':q', v = key .. ':v', state = state,
    last = 0, held = 0, limit = NEVER, least = 0, heldEnd = NEVER, pendingEnd = NEVER, liveUntil = 0, longest = 0,
    ownerless = 0,
  }
  local kind = state and string.byte(state)
  if kind == FREE then
    q.last = unpack('<d', state, 2)
  elseif kind == LONE then
    local token, ends, since, hold, limit, owner, at = unpack('<dddddBc0', state, 2)
    q.lone = owner
    q.record = { token = token, ends = ends, since = since, hold = hold, limit = limit, meta = string.sub(state, at) }
    q.last = token
    tally(q.record)
  elseif kind == QUEUE then
    q.spilled = true
    q.last, q.held, q.limit, q.least, q.heldEnd, q.pendingEnd, q.liveUntil, q.ownerless = unpack('<dddddddd', state, 2)
  end
end

local function get(owner)
  if q.lone then
    if q.lone == owner then return q.record end
  elseif q.spilled then
    local record = call('HGET', q.d, owner)
    if record then return decode(record) end
  end
end

-- Adds or overwrites a request. The first one stands in KEY itself, the second moves both into the hash.
local function put(owner, r)
  q.longest = max(q.longest, endOf(r))
  if q.lone == owner or not (q.lone or q.spilled) then
    q.lone, q.record = owner, r
    return
  end
  if q.lone then
    call('HSET', q.d, q.lone, encode(q.record))
    q.longest = max(q.longest, endOf(q.record))
    q.lone, q.record, q.spilled, q.liveUntil = nil, nil, true, 0
  end
  call('HSET', q.d, owner, encode(r))
end

local function del(owner)
  if q.lone == owner then
    q.lone, q.record = nil, nil
  else
    call('HDEL', q.d, owner)
  end
end

local function all()
  if q.lone then return { q.lone, q.record } end
  local list = q.spilled and call('HGETALL', q.d) or {}
  for n = 2, #list, 2 do list[n] = decode(list[n]) end
  return list
end

-- The owner goes, its minimum hold keeps the place.
local function disown(owner, r)
  del(owner)
  r.ends = r.since + r.hold * 1000
  r.meta = string.gsub(r.meta, '^%S+', '!', 1)
  put(string.format('!%.0f', r.token), r)
  q.heldEnd = min(q.heldEnd, r.ends)
end

-- Tells the process that waits: through the reply when it is the caller's own, otherwise by a message.
local function ring(r, text)
  local channel = string.match(r.meta, '^%S+')
  if channel == own then
    events[#events + 1] = text
  elseif channel ~= '!' then
    redis.pcall('PUBLISH', channel, text) -- a bell only makes it faster: never fail for one, half done
  end
end

-- No bell will ring when an ownerless place ends: the first who waits for it learns from its next answer when that is.
local function tellHead()
  local head = q.ownerless > 0 and q.spilled and call('LINDEX', q.p, 0)
  local r = head and get(head)
  if r then ring(r, 'c' .. head) end
end

-- The list was evicted: the order is that of their arrival.
local function relist(pending)
  table.sort(pending, function(a, b) return a.since < b.since end)
  call('DEL', q.p)
  for _, r in ipairs(pending) do call('RPUSH', q.p, r.owner) end
  q.liveUntil = 0
end

-- Looks at every request: drops what has expired, counts the rest.
local function recount()
  q.held, q.limit, q.least, q.heldEnd, q.pendingEnd, q.ownerless = 0, NEVER, 0, NEVER, NEVER, 0
  local list, pending, disowned = all(), {}, false
  for n = 1, #list, 2 do
    local owner, r = list[n], list[n + 1]
    if endOf(r) <= now then
      del(owner)
      if r.token == 0 then call('LREM', q.p, 1, owner) end
    else
      if r.ends <= now then
        disown(owner, r)
        disowned = true
      end
      tally(r)
      if r.token == 0 then
        r.owner = owner
        pending[#pending + 1] = r
      end
    end
  end
  if q.spilled and call('LLEN', q.p) ~= #pending then relist(pending) end
  if q.held == 0 and #pending == 0 then q.spilled = nil end
  if disowned then tellHead() end
end

local function remove(owner, r)
  del(owner)
  if r.token == 0 then
    call('LREM', q.p, 1, owner)
    return
  end
  q.held = q.held - 1
  if isOwnerless(r) then q.ownerless = q.ownerless - 1 end
  if q.held == 0 then
    q.limit, q.least, q.heldEnd = NEVER, 0, NEVER
  elseif r.limit == q.limit then
    q.least = q.least - 1
    if q.least == 0 then recount() end
  end
end

local function joins(limit)
  return q.held == 0 or (limit > 0 and q.limit > 0 and q.held < min(limit, q.limit))
end

local function grant(owner, r)
  q.last = max(q.last + 1, now)
  assert(q.last < NEVER, 'the token would not be exact any more')
  r.token, r.since = q.last, now
  put(owner, r)
  tally(r)
end

-- Whether anybody listens there. In a Cluster the listeners of other nodes are not counted: it cannot be known.
local listeners = {}
local function heard(r)
  local channel = string.match(r.meta, '^%S+')
  if not PROBE or channel == own then return true end
  if listeners[channel] == nil then
    local counted = redis.pcall('PUBSUB', 'NUMSUB', channel)
    listeners[channel] = counted.err ~= nil or counted[2] > 0
  end
  return listeners[channel]
end

-- The pending request to be granted next: the first, unless nobody hears it and somebody behind it does.
local function successor()
  local owner, r = call('LINDEX', q.p, 0), nil
  while owner do
    r = get(owner)
    if r then break end
    call('LPOP', q.p) -- its record was evicted
    owner = call('LINDEX', q.p, 0)
  end
  if not owner or not joins(r.limit) then return nil end
  if heard(r) then
    call('LPOP', q.p)
    return owner, r
  end
  for _, other in ipairs(call('LRANGE', q.p, 1, MOST_PASSED_OVER)) do
    local candidate = get(other)
    if candidate and joins(candidate.limit) and heard(candidate) then
      call('LREM', q.p, 1, other)
      return other, candidate
    end
  end
  call('LPOP', q.p)
  return owner, r
end

-- The rule: grants whatever may be granted now, and rings.
local function advance()
  local granted = false
  while q.spilled and q.limit > 0 do
    local owner, r = successor()
    if not owner then break end
    grant(owner, r)
    ring(r, string.format('g%.0f %s', r.token, owner))
    granted = true
  end
  if granted then tellHead() end
  if q.held == 0 then q.spilled, q.pendingEnd = nil, NEVER end
end

-- Comes first in every verb that changes the queue.
local function drop()
  if now >= q.heldEnd or now >= q.pendingEnd then
    recount()
    advance()
  end
end

local function push(owner, r)
  put(owner, r)
  tally(r)
  if call('RPUSH', q.p, owner) == 1 then
    call('PEXPIRE', q.p, max(math.ceil((q.liveUntil - now) / 1000), REMEMBER_MS))
  end
end

-- In how many ms a lease ahead of a pending request may end. Only a shared one can gain by the end of a pending one.
local function recheck(limit)
  local ends = q.heldEnd
  if limit > 0 then ends = min(ends, q.pendingEnd) end
  return max(0, math.ceil((ends - now) / 1000))
end

-- Renews a request that is there and says how it stands.
local function keep(owner, r, ttl, pendingTtl)
  local ends = now + (r.token == 0 and pendingTtl or ttl) * 1000
  if ends > r.ends then
    r.ends = ends
    put(owner, r)
  end
  if r.token > 0 then return r.token end
  return 'p' .. recheck(r.limit)
end

-- How a request ended that is not there.
local function ending(owner)
  return call('HGET', q.v, owner) or 'x'
end

local function punish(owner, r, reason)
  remove(owner, r)
  if string.byte(owner) == 33 then return end
  call('HSET', q.v, owner, reason)
  local ms = math.ceil((r.ends - now) / 1000)
  if ms > call('PTTL', q.v) then call('PEXPIRE', q.v, max(ms, 1)) end
  ring(r, 'c' .. owner)
end

-- Writes what has changed. All keys of a name live until its longest lease has been over for REMEMBER_MS (at most an
-- eighth of that longer, so that not every renewal has to set three expiries).
local function save()
  local liveUntil = q.longest + REMEMBER_MS * 1000
  if q.held == 0 then
    local state = q.last > 0 and '-' .. pack('<d', q.last)
    if state and state ~= q.state then call('SET', q.key, state, 'PX', REMEMBER_MS) end
  elseif q.lone then
    local r = q.record
    local state = '+' .. pack('<dddddBc0', r.token, r.ends, r.since, r.hold, r.limit, #q.lone, q.lone) .. r.meta
    if state ~= q.state then
      call('SET', q.key, state, 'PX', math.ceil((endOf(r) - now) / 1000) + REMEMBER_MS)
    end
  else
    local px
    if liveUntil > q.liveUntil then
      px = math.ceil((liveUntil - now) / 1000 + REMEMBER_MS / 8)
      q.liveUntil = now + px * 1000
    end
    local state = '='
      .. pack('<dddddddd', q.last, q.held, q.limit, q.least, q.heldEnd, q.pendingEnd, q.liveUntil, q.ownerless)
    if px then
      call('SET', q.key, state, 'PX', px)
      call('PEXPIRE', q.d, px)
      call('PEXPIRE', q.p, px)
    elseif state ~= q.state then
      call('SET', q.key, state, 'KEEPTTL')
    end
  end
end

-- The answers, and after them the bells for the caller's own process. A lone answer stands for itself.
local function reply(answers)
  for _, event in ipairs(events) do answers[#answers + 1] = event end
  if #answers == 1 then return answers[1] end
  return answers
end
