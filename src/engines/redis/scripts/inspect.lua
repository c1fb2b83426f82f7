-- The queues of several names in order, after dropping what has expired.
--
-- KEYS[n]  the names' keys (one slot in a Cluster)
-- ARGV[1]  the caller's bell channel
-- ARGV[2]  'q': the requests; 'n': only how many
-- Returns  for each name a number, or a list with five entries for each request: token ('0' while pending), limit,
--          since in microseconds, what is left of it in ms, channel and description of the client; then bells for the
--          caller's process.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local own = ARGV[1]
-- include: queue

local function describe(entries, r)
  entries[#entries + 1] = string.format('%.0f', r.token)
  entries[#entries + 1] = string.format('%.0f', r.limit)
  entries[#entries + 1] = string.format('%.0f', r.since)
  entries[#entries + 1] = string.format('%.0f', math.ceil((endOf(r) - now) / 1000))
  entries[#entries + 1] = r.meta
end

local function requests()
  local list, held, pending, entries = all(), {}, {}, {}
  for n = 1, #list, 2 do
    local r = list[n + 1]
    if r.token > 0 then held[#held + 1] = r else pending[list[n]] = r end
  end
  table.sort(held, function(a, b) return a.token < b.token end)
  for _, r in ipairs(held) do describe(entries, r) end
  if q.spilled then
    for _, owner in ipairs(call('LRANGE', q.p, 0, -1)) do
      if pending[owner] then describe(entries, pending[owner]) end
    end
  end
  return entries
end

local answers = {}
for n = 1, #KEYS do
  open(KEYS[n], call('GET', KEYS[n]))
  drop()
  if ARGV[2] == 'n' then answers[n] = q.held else answers[n] = requests() end
  save()
end
for _, event in ipairs(events) do answers[#answers + 1] = event end
return answers
