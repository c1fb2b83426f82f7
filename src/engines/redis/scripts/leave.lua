-- Owners leave their queues: each releases what it holds, or withdraws. Nothing happens to one that is not there.
--
-- KEYS[n]     the names' keys (one slot in a Cluster)
-- ARGV[1]     the caller's bell channel
-- ARGV[2n..]  owner, and '1': a minimum hold that is not over keeps the place, or '0': it does not
-- Returns     0, or bells for the caller's process after it

local NO_HOLD = '\0\0\0\0\0\0\0\0'
local others

-- Those who leave alone; the others, and whoever comes behind them at the same name, later.
for n = 1, #KEYS do
  local key, leaver = KEYS[n], ARGV[2 * n]
  local state = redis.call('GET', key)
  local kind = state and string.byte(state)
  local left = not kind or kind == 45
  if kind == 43 and not (others and others[key]) then
    -- Somebody is there alone; the owner stands behind five numbers and its length.
    if string.byte(state, 42) ~= #leaver or string.sub(state, 43, 42 + #leaver) ~= leaver then
      left = true
    elseif ARGV[2 * n + 1] == '0' or string.sub(state, 26, 33) == NO_HOLD then
      redis.call('SET', key, '-' .. string.sub(state, 2, 9), 'PX', REMEMBER_MS)
      left = true
    end
  end
  if not left then
    others = others or {}
    others[#others + 1] = n
    others[key] = true
  end
end
if not others then return 0 end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local own = ARGV[1]
-- include: queue

for _, n in ipairs(others) do
  local owner = ARGV[2 * n]
  open(KEYS[n], call('GET', KEYS[n]))
  local r = get(owner)
  if r then
    if r.token > 0 and ARGV[2 * n + 1] == '1' and r.since + r.hold * 1000 > now then
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
end
return reply({ 0 })
