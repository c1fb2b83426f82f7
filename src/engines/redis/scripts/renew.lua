-- Renews requests of several names and answers the state of each.
--
-- KEYS[n]       the names' keys (one slot in a Cluster)
-- ARGV[1]       the caller's bell channel
-- ARGV[3n-1..]  owner, TTL in ms once held, TTL in ms while pending
-- Returns       for each the token (held), 'p' .. recheck in ms (pending), or how it ended: 'x' expired or unknown,
--               's' stolen, 'e' evicted; then bells for the caller's process. A lone answer stands for itself.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local own = ARGV[1]
-- include: queue

local answers = {}
for n = 1, #KEYS do
  local owner, ttl, pendingTtl = ARGV[3 * n - 1], tonumber(ARGV[3 * n]), tonumber(ARGV[3 * n + 1])
  open(KEYS[n], call('GET', KEYS[n]))
  drop()
  local r = get(owner)
  answers[n] = r and keep(owner, r, ttl, pendingTtl) or ending(owner)
  save()
end
return reply(answers)
