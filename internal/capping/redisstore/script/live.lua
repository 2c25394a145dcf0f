-- Keeps the log of the live changes to sets, for the users of one partition. Package live explains the changes.
--
-- KEYS[1]  the log, a hash:
--            ""     the version: the log's id (8 hexadecimal digits), then the nonce (8) and the number of the latest
--                   record. The number is decimal.
--            <n>    record n: its nonce (8), and then the changes of a call; without changes only the nonce
--            p<k>   packed record k: the changes of several calls
--            m      how often the log was packed, the first and the last k, the number of packed records after the
--                   latest compaction, the latest packed n, and its nonce; with spaces between them
--            f      freed instants of the sets
--            h      a token: the partition's records were lost, and instances still store the changes that they know again
--            ha     the token, then the ids of the instances that have done so; with spaces between them
--          The log has every record after the latest packed n, up to the version. A record with the same number and
--          nonce in two copies of a log has the same records before it. After a failover a reader thereby notices that
--          the log lacks a record that the reader knows.
-- ARGV[1]  a append, r read, p pack, l begin to restore, c confirm, e end
-- append   ARGV[2] TTL in milliseconds, [3] id for a new log, [4] nonce, [5] the changes, [6] header, ${STAMP_HEADER} bytes, big
--          endian: now (5), skew (4); see filter.lua. The changes have the instants of a clock that must be right.
-- read     ARGV[2] the known version; nothing: none. [3] where to continue: nothing at first, then what the previous
--          reply names; t<c>: at the latest c packed records
-- pack     ARGV[2] TTL in milliseconds, [3] version up to which the log was read, [4] m as it was read, [5] the next m,
--          [6] nothing, or a nonce: then [7] has the freed instants; [8] number of fields to remove, then their names,
--          then packed records: name, content, name, content …
-- begin    ARGV[2] TTL in milliseconds, [3] id for a new log, [4] nonce, [5] a token. An empty record makes every
--          instance read the log.
-- confirm  ARGV[2] the token, [3] the instance's id
-- end      ARGV[2] the token, [3]… the ids of the instances that have to confirm
--
-- Reply    append  the version before, the version now, m
--          read    the version, m, the freed instants, the token of h or nothing,
--                  n the known version is the latest, i the records after it follow, w a page of the whole log follows,
--                  x the log has changed: start again,
--                  where to continue, or nothing; then name and content of each record
--          pack    D done, the version before, the version now; N the log has changed, and nothing was written
--          begin   the version before, the version now, m
--          confirm D done, N h has another token or none
--          end     D done, N h has another token or none, M and the ids of the instances that have not confirmed
-- Errors   BADARG …, BADLOG …, CLOCKSKEW <milliseconds>: nothing was written.
-- Cost     linear in the bytes of the arguments and of the reply. A page has about ${LIVE_PAGE} bytes.
local call, sub, match = redis.call, string.sub, string.match
local key, op, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local HEX = string.rep('%x', 8)

-- parse returns id, nonce and number of a version.
local function parse(version)
  local id, nonce, number = match(version, '^(' .. HEX .. ')(' .. HEX .. ')(%d+)$')
  return id, nonce, tonumber(number)
end

local function decimal(n) return string.format('%.0f', n) end

local valid = #KEYS == 1
if op == 'a' then
  valid = valid and #ARGV == 6 and ttl and ttl >= 1 and parse(ARGV[3] .. ARGV[4] .. '0') and #ARGV[5] > 0
    and #ARGV[6] == ${STAMP_HEADER}
elseif op == 'r' then
  valid = valid and #ARGV == 3 and (ARGV[2] == '' or parse(ARGV[2]))
    and (ARGV[3] == '' or match(ARGV[3], '^[pt]?%d+$'))
elseif op == 'p' then
  local remove = tonumber(ARGV[8])
  valid = valid and ttl and ttl >= 1 and parse(ARGV[3] or '') and match(ARGV[5] or '', '^%d+ %d+ %d+ %d+ %d+ %x*$')
    and (ARGV[6] == '' and ARGV[7] == '' or match(ARGV[6] or '', '^' .. HEX .. '$') and #ARGV[7] > 0)
    and remove and remove >= 0 and remove <= #ARGV - 8 and (#ARGV - remove) % 2 == 0
  for i = 9, valid and #ARGV or 0 do
    if i <= 8 + remove then
      valid = valid and match(ARGV[i], '^p?%d+$')
    elseif (i - remove) % 2 == 1 then
      valid = valid and match(ARGV[i], '^p%d+$')
    else
      valid = valid and #ARGV[i] > 0
    end
  end
elseif op == 'l' then
  valid = valid and #ARGV == 5 and ttl and ttl >= 1 and parse(ARGV[3] .. ARGV[4] .. '0') and match(ARGV[5], '^%w+$')
elseif op == 'c' or op == 'e' then
  valid = valid and #ARGV >= 3 and (op == 'e' or #ARGV == 3)
  for i = 2, #ARGV do valid = valid and match(ARGV[i], '^%w+$') end
else
  valid = false
end
if not valid then return redis.error_reply('BADARG a log, an operation and its arguments') end

local head = call('HMGET', key, '', 'm', 'f', 'h', 'ha')
local version, meta, freed, restoring = head[1] or '', head[2] or '', head[3] or '', head[4] or ''
local id, nonce, number = parse(version)
local first, last, packed, packed_nonce = match(meta, '^%d+ (%d+) (%d+) %d+ (%d+) (%x*)$')
if head[1] and not id or head[2] and not first then return redis.error_reply('BADLOG the log has no valid version') end
first, last, packed = tonumber(first or 1), tonumber(last or 0), tonumber(packed or 0)

-- within reports whether the log has the record of another version.
local function within(version)
  local other, its, n = parse(version)
  if other ~= id or n > number or n < packed then return false end
  if n == packed then return its == packed_nonce end
  return its == sub(call('HGET', key, decimal(n)) or '', 1, 8)
end

if op == 'a' then
  local stamp, skew = struct.unpack('${STAMP_FORMAT}', ARGV[6])
  local refusal = clockskew(stamp, skew)
  if refusal then return refusal end
  id, number = id or ARGV[3], decimal((number or 0) + 1)
  local now = id .. ARGV[4] .. number
  call('HSET', key, '', now, number, ARGV[4] .. ARGV[5])
  call('PEXPIRE', key, ARGV[2])
  return {version, now, meta}
end

if op == 'l' then
  id, number = id or ARGV[3], decimal((number or 0) + 1)
  local now = id .. ARGV[4] .. number
  call('HSET', key, '', now, number, ARGV[4], 'h', ARGV[5])
  call('PEXPIRE', key, ARGV[2])
  return {version, now, meta}
end

if op == 'c' or op == 'e' then
  if restoring ~= ARGV[2] then return {'N'} end
  local token, confirmed = match(head[5] or '', '^(%w+)(.*)$')
  if token ~= restoring then confirmed = '' end
  local missing = {'M'}
  for i = 3, #ARGV do
    if not string.find(confirmed .. ' ', ' ' .. ARGV[i] .. ' ', 1, true) then missing[#missing + 1] = ARGV[i] end
  end
  if op == 'c' and missing[2] then call('HSET', key, 'ha', restoring .. confirmed .. ' ' .. ARGV[3]) end
  if op == 'e' and missing[2] then return missing end
  if op == 'e' then call('HDEL', key, 'h', 'ha') end
  return {'D'}
end

if op == 'r' then
  local reply, size = {version, meta, freed, restoring, 'w', ''}, 0
  local at = ARGV[3]
  if at == '' then
    if ARGV[2] == version then
      reply[5] = 'n'
      return reply
    end
    at = 'p' .. first
    if id and ARGV[2] ~= '' and within(ARGV[2]) then
      local _, _, known = parse(ARGV[2])
      reply[5], at = 'i', decimal(known + 1)
    end
  elseif ARGV[2] ~= '' and not (id and within(ARGV[2])) then
    reply[5] = 'x'
    return reply
  end
  -- add appends fields from the number n up to the number to, until the page is full, and returns the next number.
  local function add(prefix, n, to, all)
    while n <= to and size < ${LIVE_PAGE} do
      local names = {}
      for i = n, math.min(n + 15, to) do names[#names + 1] = prefix .. decimal(i) end
      local values = call('HMGET', key, unpack(names))
      for i = 1, #names do
        if values[i] then
          reply[#reply + 1], reply[#reply + 2] = names[i], values[i]
          size = size + #values[i]
        elseif all then
          return nil
        end
      end
      n = n + 16
    end
    return n
  end
  local kind, n = match(at, '^([pt]?)(%d+)$')
  n = tonumber(n)
  if kind ~= '' then
    if kind == 't' then n = math.max(first, last - n + 1) end
    n = add('p', n, last, false)
    if n <= last then
      reply[6] = 'p' .. decimal(n)
      return reply
    end
    n = packed + 1
  end
  if n <= packed then
    reply[5] = 'x'
    return reply
  end
  n = add('', n, number or 0, true)
  if not n then return redis.error_reply('BADLOG the log lacks a record') end
  if n <= (number or 0) then reply[6] = decimal(n) end
  return reply
end

if not id or meta ~= ARGV[4] or not within(ARGV[3]) then return {'N', version, version} end
local stop, now = 8 + tonumber(ARGV[8]), version
for i = 9, stop, 1000 do call('HDEL', key, unpack(ARGV, i, math.min(i + 999, stop))) end
for i = stop + 1, #ARGV, 1000 do call('HSET', key, unpack(ARGV, i, math.min(i + 999, #ARGV))) end
call('HSET', key, 'm', ARGV[5])
if ARGV[6] ~= '' then
  number = decimal(number + 1)
  now = id .. ARGV[6] .. number
  call('HSET', key, '', now, number, ARGV[6], 'f', ARGV[7])
end
call('PEXPIRE', key, ARGV[2])
return {'D', version, now}
