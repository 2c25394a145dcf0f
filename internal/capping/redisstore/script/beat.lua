-- Renews the records that all instances share. All keys are in one slot.
--
-- KEYS[1]  the format marker, a string
-- KEYS[2]  the store's record, a hash: born (when it was created), signed (1 when every partition has its sentinel key)
-- KEYS[3]  retentions, a hash: milliseconds -> when last renewed. A retention stays in force for its own length.
-- KEYS[4]  channels, a hash: name -> number and when last renewed
-- KEYS[5]  instances, a hash: id -> time of the last heartbeat, and the description
-- ARGV[1]  the format marker of the newest format that this instance knows
-- ARGV[2]  the oldest format that it reads, [3] the newest, [4] the marker's description of the keyspace
-- ARGV[5]  0: a running instance; 1: a start, which also takes over logs that an older version left without the
--          other records; 2: like 1, and an empty keyspace becomes a store; 3: missing records of a store are created
--          again, if all its sentinel keys were created before
-- ARGV[6]  the instance's retention; 0: none yet
-- ARGV[7]  the instance's id, [8] its description, [9] milliseconds after which a silent instance is left out
-- ARGV[10] minimum TTL of the records in milliseconds
-- ARGV[11]… its channels: name, number, name, number …
--
-- The store is in the format that KEYS[1] names. It moves to a newer format when the description of every instance
-- that is not silent says that the instance reads the format.
--
-- Times are milliseconds since 1970 by the node's clock.
--
-- Reply    outcome, then for
--            format   the marker that was found
--            gone     nothing: records are missing that this instance may not create
--            channel  the name and number that contradict the stored ones, then the stored ones
--            found, adopted (only KEYS[1] existed), made, mended: the longest retention in force, born, signed,
--                     the format of the store before, its format now,
--                     then id and description of every other instance
-- Errors   BADARG …: nothing was written. The outcomes format and channel write nothing either. With gone, a running
--          instance (0) writes its own entry in KEYS[5]: a start that creates the records again learns which instances
--          still know the changes of sets.
-- Cost     linear in the entries of the three hashes, which are few.
local call = redis.call
local oldest, newest, own, silent, life = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[9]), tonumber(ARGV[10])
if #KEYS ~= 5 or #ARGV < 10 or #ARGV % 2 ~= 0 or not (oldest and newest) or not own or not silent or not (life and life >= 1) then
  return redis.error_reply('BADARG records, an instance and its channels')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- version returns the format that a marker names, if this instance can use it.
local function version(marker)
  local named, rest = string.match(marker, '^capper log (%d+) (.*)$')
  local least, space = string.match(rest or '', '^least (%d+) (.*)$')
  named, least, space = tonumber(named), tonumber(least or named), space or rest
  if not named or named < oldest or least > newest then return nil end
  if space ~= ARGV[4] and string.sub(space, 1, #ARGV[4] + 1) ~= ARGV[4] .. ' ' then return nil end
  return named
end

local text, born = call('GET', KEYS[1]), call('HGET', KEYS[2], 'born')
local before = text and version(text)
if text and not before then return {'format', text} end
local stamp = string.format('%d', now)
local outcome = 'found'
if ARGV[5] == '0' and not (text and born) then
  call('HSET', KEYS[5], ARGV[7], stamp .. ' ' .. ARGV[8])
  call('PEXPIRE', KEYS[5], ARGV[10])
  return {'gone'}
elseif not text then
  if ARGV[5] == '1' then return {'gone'} end
  outcome = 'made'
elseif not born then
  outcome = 'adopted'
end
if outcome ~= 'found' and ARGV[5] == '3' then outcome = 'mended' end

-- each calls the function for every field and value of a hash.
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

-- A channel that no instance has used for twice the retention occurs in no log.
local names, numbers, unused = {}, {}, {}
each(KEYS[4], function(name, value)
  local number, renewed = string.match(value, '^(%d+) (%d+)$')
  if not number or renewed + 2 * longest <= now then
    unused[#unused + 1] = name
  else
    names[number], numbers[name] = name, number
  end
end)
for i = 11, #ARGV, 2 do
  local name, number = ARGV[i], ARGV[i + 1]
  if numbers[name] and numbers[name] ~= number then return {'channel', name, number, name, numbers[name]} end
  if names[number] and names[number] ~= name then return {'channel', name, number, names[number], number} end
end

-- Collect the other instances, and check whether all of them read the newest format.
local others, silenced, all = {}, {}, true
each(KEYS[5], function(id, value)
  local heard, description = string.match(value, '^(%d+) (.*)$')
  if not heard or heard + silent < now then
    silenced[#silenced + 1] = id
  elseif id ~= ARGV[7] then
    others[id] = description
    local reads = string.match(description, '"formats":"%d+%-(%d+)"')
    all = all and reads and tonumber(reads) >= newest
  end
end)

local after = before
if not text or before < newest and all and outcome == 'found' then
  call('SET', KEYS[1], ARGV[1])
  before, after = before or newest, newest
end
if not born or outcome == 'made' then
  born = stamp
  call('HSET', KEYS[2], 'born', born, 'signed', '0')
end
if outcome == 'mended' then call('HSET', KEYS[2], 'signed', '1') end
for _, retention in ipairs(past) do call('HDEL', KEYS[3], retention) end
if own > 0 then call('HSET', KEYS[3], ARGV[6], stamp) end
for _, name in ipairs(unused) do call('HDEL', KEYS[4], name) end
for i = 11, #ARGV, 2 do call('HSET', KEYS[4], ARGV[i], ARGV[i + 1] .. ' ' .. stamp) end
for _, id in ipairs(silenced) do call('HDEL', KEYS[5], id) end
call('HSET', KEYS[5], ARGV[7], stamp .. ' ' .. ARGV[8])
local lasts = string.format('%d', math.max(life, 2 * longest))
for _, key in ipairs(KEYS) do call('PEXPIRE', key, lasts) end

local reply = {outcome, string.format('%d', longest), born, call('HGET', KEYS[2], 'signed') or '0',
  string.format('%d', before), string.format('%d', after)}
for id, description in pairs(others) do
  reply[#reply + 1] = id
  reply[#reply + 1] = description
end
return reply
