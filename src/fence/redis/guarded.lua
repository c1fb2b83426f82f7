-- Refuses a holder from the past, then runs the body, in one atomic step. The body is put in where the marker is, at the end.
-- KEYS: 1 the fence, which holds "epoch:token" of the latest holder that entered; then the body's own.
-- ARGV: 1 epoch, 2 token (decimal), 3 for how many ms the fence is remembered after its last use (0: for ever); then the
-- body's own.
-- Returns what the body returns, or the error STALETOKEN with what the fence holds.

-- Digits, not numbers: a double is exact up to 2^53 only.
local function lower(left, right)
  if #left ~= #right then return #left < #right end
  return left < right
end

local function rest(list, from)
  local result = {}
  for index = from, #list do result[index - from + 1] = list[index] end
  return result
end

local seen = redis.call('GET', KEYS[1])
if seen then
  local epoch, token = string.match(seen, '^(%d+):(%d+)$')
  if not epoch then return redis.error_reply('ERR the key of the fence holds something else') end
  if lower(ARGV[1], epoch) or (ARGV[1] == epoch and lower(ARGV[2], token)) then
    return redis.error_reply('STALETOKEN ' .. seen)
  end
end
if ARGV[3] ~= '0' then
  redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], 'PX', ARGV[3])
elseif seen ~= ARGV[1] .. ':' .. ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2])
end

local function body(KEYS, ARGV)
--@body
end
return body(rest(KEYS, 2), rest(ARGV, 4))
