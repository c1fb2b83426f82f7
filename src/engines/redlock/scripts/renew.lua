-- Renews leases of many names. Only an own lock is renewed; a lock that this node has lost is set again, as a new
-- vote of the same owner, with the counter raised to its token or above. A lease is never made shorter.
--
-- KEYS[1] record of the node   KEYS[2 …] records of names
-- ARGV[1] run id, ARGV[2] longest lease, as for acquire   ARGV[3] rememberMs
-- then four for each name: owner, lease ms, token to set it again with ("0": do not), client JSON
--
-- Returns {verdict, s, µs, answer …}: "foreign" alone, or "ok" and for each name
--   "held"    renewed
--   "joined"  was missing, set again: counts from the next round on
--   "missing" is missing
--   "evicted" was taken away by hand
--   "lost"    somebody else's
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local node = redis.call("HMGET", KEYS[1], "run", "ttl", "high", "floor", "floor_at")
if ARGV[1] ~= "" and (node[1] ~= ARGV[1] or node[2] ~= ARGV[2]) then
  return { "foreign", time[1], time[2] }
end
local high, floor, floor_at = tonumber(node[3] or 0), tonumber(node[4] or 0), tonumber(node[5] or 0)
local remember_ms = tonumber(ARGV[3])

local function store(key, counter, lease_ms, rest)
  local expiry = string.format("%.0f", now_ms + lease_ms)
  redis.call("SET", key, counter .. "|" .. expiry .. "|" .. rest, "PX", string.format("%.0f", lease_ms + remember_ms))
end

local function renew(key, owner, lease_ms, token, client)
  local counter, left, holder, evicted, rest = "0", 0, "", "", ""
  local record = redis.call("GET", key)
  if record then
    local expiry
    counter, expiry, rest = string.match(record, "^(%d+)|(%d+)|(.*)$")
    holder, evicted = string.match(rest, "^%d+|([^|]*)|([^|]*)|")
    left = tonumber(expiry) - now_ms
  end
  if holder == owner and left > 0 then
    if left < lease_ms then store(key, counter, lease_ms, rest) end
    return "held"
  end
  if string.find(" " .. evicted .. " ", " " .. owner .. " ", 1, true) then return "evicted" end
  if holder ~= "" and left > 0 then return "lost" end
  if token == "0" then return "missing" end

  if now_ms < floor_at or now_ms - floor_at >= remember_ms then
    floor, floor_at = high, now_ms
    redis.call("HSET", KEYS[1], "floor", string.format("%.0f", high), "floor_at", string.format("%.0f", now_ms))
  end
  local raised = math.max(math.max(tonumber(counter), floor) + 1, tonumber(token))
  local text = string.format("%.0f", raised)
  store(key, text, lease_ms, string.format("%.0f", now_ms) .. "|" .. owner .. "|" .. evicted .. "|" .. client)
  if raised > high then
    high = raised
    redis.call("HSET", KEYS[1], "high", text)
  end
  return "joined"
end

local reply = { "ok", time[1], time[2] }
for index = 2, #KEYS do
  local at = 4 * (index - 1)
  reply[#reply + 1] = renew(KEYS[index], ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3])
end
return reply
