-- A small Redis for the simulation: it keeps the keys of any number of servers and runs the product's own scripts on them. It
-- knows the commands that those scripts use, with the replies that Redis gives to a script, and no others.
--
-- Globals for the caller: command(server, micros, text) and forget(server). `text` has the words of a command, with
-- SEPARATOR between them. The answer is JSON: {"reply": …} or {"error": "…"}, and "bells": what was published, in order.

local SEPARATOR = "\31"
local servers = {}
-- While a command is carried out: its server's keys, who listens there, and the server's time, which stands still meanwhile.
local keys, listeners, bells, now_micros, now_ms

local function server_of(id)
  servers[id] = servers[id] or { keys = {}, listeners = {}, scripts = {} }
  return servers[id]
end

local function find(key)
  local entry = keys[key]
  if entry and entry.ends and now_ms > entry.ends then
    keys[key] = nil
    return nil
  end
  return entry
end

-- The value of a key, made when it is missing.
local function open(key, make)
  local entry = find(key)
  if not entry then
    entry = { value = make() }
    keys[key] = entry
  end
  return entry.value
end

local function value_of(key)
  local entry = find(key)
  return entry and entry.value
end

local redis_commands = {}

function redis_commands.GET(key) return value_of(key) or false end

function redis_commands.SET(key, value, ...)
  local options = { ... }
  local ends, keep = nil, false
  for index = 1, #options do
    local option = options[index]
    if option == "NX" and find(key) then return false end
    if option == "PX" then ends = now_ms + math.floor(tonumber(options[index + 1])) end
    if option == "KEEPTTL" then keep = true end
  end
  local before = find(key)
  if keep and before then ends = before.ends end
  keys[key] = { value = tostring(value), ends = ends }
  return { ok = "OK" }
end

function redis_commands.DEL(...)
  local count = 0
  for _, key in ipairs({ ... }) do
    if find(key) then count = count + 1 end
    keys[key] = nil
  end
  return count
end

function redis_commands.PTTL(key)
  local entry = find(key)
  if not entry then return -2 end
  return entry.ends and entry.ends - now_ms or -1
end

function redis_commands.PEXPIRE(key, ms)
  local entry = find(key)
  if not entry then return 0 end
  entry.ends = now_ms + math.floor(tonumber(ms))
  return 1
end

-- Hashes keep the order of their fields, as small ones do in Redis.
local function new_hash() return { fields = {}, order = {} } end

function redis_commands.HSET(key, ...)
  local hash, words, added = open(key, new_hash), { ... }, 0
  for index = 1, #words, 2 do
    local field = tostring(words[index])
    if hash.fields[field] == nil then
      hash.order[#hash.order + 1] = field
      added = added + 1
    end
    hash.fields[field] = tostring(words[index + 1])
  end
  return added
end

function redis_commands.HGET(key, field)
  local hash = value_of(key)
  return hash and hash.fields[tostring(field)] or false
end

function redis_commands.HMGET(key, ...)
  local reply = {}
  for index, field in ipairs({ ... }) do reply[index] = redis_commands.HGET(key, field) end
  return reply
end

function redis_commands.HEXISTS(key, field) return redis_commands.HGET(key, field) and 1 or 0 end

function redis_commands.HDEL(key, ...)
  local hash, count = value_of(key), 0
  if not hash then return 0 end
  for _, field in ipairs({ ... }) do
    if hash.fields[field] ~= nil then
      hash.fields[field] = nil
      count = count + 1
      for index, other in ipairs(hash.order) do
        if other == field then
          table.remove(hash.order, index)
          break
        end
      end
    end
  end
  if #hash.order == 0 then keys[key] = nil end
  return count
end

function redis_commands.HLEN(key)
  local hash = value_of(key)
  return hash and #hash.order or 0
end

function redis_commands.HKEYS(key)
  local hash = value_of(key)
  return hash and { table.unpack(hash.order) } or {}
end

function redis_commands.HGETALL(key)
  local hash, reply = value_of(key), {}
  for _, field in ipairs(hash and hash.order or {}) do
    reply[#reply + 1] = field
    reply[#reply + 1] = hash.fields[field]
  end
  return reply
end

local function new_list() return {} end

function redis_commands.RPUSH(key, ...)
  local list = open(key, new_list)
  for _, value in ipairs({ ... }) do list[#list + 1] = tostring(value) end
  return #list
end

function redis_commands.LLEN(key) return #(value_of(key) or {}) end

function redis_commands.LINDEX(key, index)
  local list = value_of(key)
  return list and list[tonumber(index) + 1] or false
end

function redis_commands.LRANGE(key, first, last)
  local list, reply = value_of(key) or {}, {}
  local to = tonumber(last) < 0 and #list + tonumber(last) + 1 or math.min(#list, tonumber(last) + 1)
  for index = tonumber(first) + 1, to do reply[#reply + 1] = list[index] end
  return reply
end

function redis_commands.LPOP(key)
  local list = value_of(key)
  if not list then return false end
  local first = table.remove(list, 1)
  if #list == 0 then keys[key] = nil end
  return first
end

-- For a count of 1 only.
function redis_commands.LREM(key, count, value)
  local list = value_of(key)
  assert(tonumber(count) == 1, "LREM removes one at a time here")
  for index, other in ipairs(list or {}) do
    if other == value then
      table.remove(list, index)
      if #list == 0 then keys[key] = nil end
      return 1
    end
  end
  return 0
end

function redis_commands.TIME()
  return { tostring(now_micros // 1000000), tostring(now_micros % 1000000) }
end

function redis_commands.PUBLISH(channel, message)
  bells[#bells + 1] = { channel, message }
  return listeners[channel] or 0
end

function redis_commands.PUBSUB(what, channel)
  assert(what == "NUMSUB", "only NUMSUB is known here")
  return { channel, listeners[channel] or 0 }
end

function redis_commands.PING() return { ok = "PONG" } end

-- For the simulation itself.
function redis_commands.LISTEN(channel)
  listeners[channel] = (listeners[channel] or 0) + 1
  return 1
end

function redis_commands.UNLISTEN(channel)
  local count = (listeners[channel] or 0) - 1
  listeners[channel] = count > 0 and count or nil
  return 1
end

-- KEYS match "prefix*" only: what SCAN is asked for here.
function redis_commands.SCAN(_, _, pattern)
  local prefix, reply = string.gsub(string.sub(pattern, 1, -2), "\\(.)", "%1"), {}
  for key in pairs(keys) do
    if string.sub(key, 1, #prefix) == prefix and find(key) then reply[#reply + 1] = key end
  end
  table.sort(reply)
  return { "0", reply }
end

local function call(name, ...)
  local run = redis_commands[string.upper(name)]
  if not run then error("ERR unknown command '" .. name .. "'", 0) end
  return run(...)
end

local redis = {
  call = call,
  pcall = function(...)
    local done, reply = pcall(call, ...)
    return done and reply or { err = reply }
  end,
  error_reply = function(text) return { err = text } end,
}

-- Redis's library `struct`, as far as the scripts use it. What it writes "Bc0" (a length, then so many bytes) Lua calls "s1".
local struct = {}

function struct.pack(format, ...)
  local values = { ... }
  if string.sub(format, -3) ~= "Bc0" then return string.pack(format, ...) end
  table.remove(values, #values - 1)
  return string.pack(string.sub(format, 1, -4) .. "s1", table.unpack(values))
end

function struct.unpack(format, text, at)
  return string.unpack((string.gsub(format, "Bc0$", "s1")), text, at)
end

-- Compiled once for all servers; every run has its own KEYS and ARGV.
local compiled = {}

local function run_script(script, words)
  local ready = compiled[script]
  if not ready then
    local environment = setmetatable({ redis = redis, struct = struct }, { __index = _G })
    ready = { chunk = assert(load(script, "script", "t", environment)), environment = environment }
    compiled[script] = ready
  end
  local count = tonumber(words[3])
  ready.environment.KEYS = { table.unpack(words, 4, 3 + count) }
  ready.environment.ARGV = { table.unpack(words, 4 + count) }
  return ready.chunk()
end

local SCRIPT_COMMANDS = { evalsha = true, eval = true }

local function carry_out(server, words)
  local name = string.lower(words[1])
  if not SCRIPT_COMMANDS[name] then return call(table.unpack(words)) end
  if name == "eval" then
    server.scripts[sha_of(words[2])] = words[2]
    return run_script(words[2], words)
  end
  local script = server.scripts[words[2]]
  if not script then return { err = "NOSCRIPT No matching script." } end
  return run_script(script, words)
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\" }

local function quoted(text)
  return '"' .. string.gsub(text, '[%c"\\]', function(char)
    return ESCAPES[char] or string.format("\\u%04x", string.byte(char))
  end) .. '"'
end

-- As Redis turns the values of Lua into replies: numbers lose their fraction, lists end at the first nil.
local function encode(value)
  if type(value) == "number" then return string.format("%.0f", value < 0 and math.ceil(value) or math.floor(value)) end
  if type(value) == "string" then return quoted(value) end
  if type(value) ~= "table" then return value == true and "1" or "null" end
  if value.ok then return quoted(value.ok) end
  local items = {}
  for index, item in ipairs(value) do items[index] = encode(item) end
  return "[" .. table.concat(items, ",") .. "]"
end

function command(id, micros, text)
  local server = server_of(id)
  keys, listeners, bells = server.keys, server.listeners, {}
  now_micros = math.floor(micros)
  now_ms = now_micros // 1000
  local words = {}
  for word in string.gmatch(text .. SEPARATOR, "(.-)" .. SEPARATOR) do words[#words + 1] = word end
  local done, reply = pcall(carry_out, server, words)
  local failure = not done and reply or type(reply) == "table" and reply.err
  local answer = failure and '"error":' .. quoted(tostring(failure)) or '"reply":' .. encode(reply)
  return "{" .. answer .. ',"bells":' .. encode(bells) .. "}"
end

-- A server that is restarted empty, or the end of a world.
function forget(id) servers[id] = nil end
