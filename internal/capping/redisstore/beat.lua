-- Renews what the instances of capper keep in common, all of it in one slot.
--
-- KEYS[1]  the format record, a string
-- KEYS[2]  the store's record, a hash: born (when it was made), signed (1 when every partition has its sign)
-- KEYS[3]  retentions, a hash: milliseconds -> when last renewed. One is in force for itself from then.
-- KEYS[4]  channels, a hash: name -> number and when last renewed
-- KEYS[5]  instances, a hash: id -> when last heard of, and its description
-- ARGV[1]  the format record of this version
-- ARGV[2]  0: an instance that runs; 1: one that starts, which also takes over logs that an older version
--          left without the other records; 2: as 1, and an empty keyspace becomes a store
-- ARGV[3]  the instance's retention; 0: none yet
-- ARGV[4]  the instance's id, [5] its description, [6] milliseconds after which a silent one is left out
-- ARGV[7]  milliseconds for which all this lasts, at least
-- ARGV[8]… its channels: name, number, name, number …
--
-- Times are milliseconds since 1970 by the node's clock.
--
-- Reply    outcome, then for
--            format   the record that was found
--            gone     nothing more: records are missing that this instance may not make
--            channel  the name and number that contradict, then those that are stored
--            found, adopted (KEYS[1] alone was there), made: the longest retention in force, born, signed,
--                     then id and description of every other instance; one may come twice
-- Errors   BADARG …: nothing was written. Nothing is written with format, gone and channel either.
-- Cost     linear in the entries of the three hashes, which are few.
local call = redis.call
local own, silent, least = tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[7])
if #KEYS ~= 5 or #ARGV < 7 or #ARGV % 2 ~= 1 or not own or not silent or not (least and least >= 1) then
  return redis.error_reply('BADARG records, an instance and its channels')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local text, born = call('GET', KEYS[1]), call('HGET', KEYS[2], 'born')
if text and text ~= ARGV[1] then return {'format', text} end
local outcome = 'found'
if not text then
  if ARGV[2] ~= '2' then return {'gone'} end
  outcome = 'made'
elseif not born then
  if ARGV[2] == '0' then return {'gone'} end
  outcome = 'adopted'
end

-- each calls what for every field and value of a hash.
local function each(key, what)
  local cursor = '0'
  repeat
    local page = call('HSCAN', key, cursor, 'COUNT', '100')
    cursor = page[1]
    for i = 1, #page[2], 2 do what(page[2][i], page[2][i + 1]) end
  until cursor == '0'
end

local longest, past = own, {}
each(KEYS[3], function(retention, renewed)
  local length = tonumber(retention) or 0
  if (tonumber(renewed) or 0) + length <= now then
    past[#past + 1] = retention
  elseif length > longest then
    longest = length
  end
end)

-- A channel that nobody has used for twice the retention is in no log.
local names, numbers, unused = {}, {}, {}
each(KEYS[4], function(name, value)
  local number, renewed = string.match(value, '^(%d+) (%d+)$')
  if not number or renewed + 2 * longest <= now then
    unused[#unused + 1] = name
  else
    names[number], numbers[name] = name, number
  end
end)
for i = 8, #ARGV, 2 do
  local name, number = ARGV[i], ARGV[i + 1]
  if numbers[name] and numbers[name] ~= number then return {'channel', name, number, name, numbers[name]} end
  if names[number] and names[number] ~= name then return {'channel', name, number, names[number], number} end
end

call('SET', KEYS[1], ARGV[1])
local stamp = string.format('%d', now)
if not born or outcome == 'made' then
  born = stamp
  call('HSET', KEYS[2], 'born', born, 'signed', '0')
end
for _, retention in ipairs(past) do call('HDEL', KEYS[3], retention) end
if own > 0 then call('HSET', KEYS[3], ARGV[3], stamp) end
for _, name in ipairs(unused) do call('HDEL', KEYS[4], name) end
for i = 8, #ARGV, 2 do call('HSET', KEYS[4], ARGV[i], ARGV[i + 1] .. ' ' .. stamp) end
call('HSET', KEYS[5], ARGV[4], stamp .. ' ' .. ARGV[5])

local reply, silenced = {outcome, string.format('%d', longest), born, call('HGET', KEYS[2], 'signed') or '0'}, {}
each(KEYS[5], function(id, value)
  local heard, description = string.match(value, '^(%d+) (.*)$')
  if not heard or heard + silent < now then
    silenced[#silenced + 1] = id
  elseif id ~= ARGV[4] then
    reply[#reply + 1] = id
    reply[#reply + 1] = description
  end
end)
for _, id in ipairs(silenced) do call('HDEL', KEYS[5], id) end
local life = string.format('%d', math.max(least, 2 * longest))
for _, key in ipairs(KEYS) do call('PEXPIRE', key, life) end
return reply
