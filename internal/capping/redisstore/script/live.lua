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
--          The log has every record after the latest packed n, up to the version. A record with the same number and
--          nonce in two copies of a log has the same records before it. After a failover a reader thereby notices that
--          the log lacks a record that the reader knows.
-- ARGV[1]  a append, r read, p pack
-- append   ARGV[2] TTL in milliseconds, [3] id for a new log, [4] nonce, [5] the changes, [6] header, ${STAMP_HEADER} bytes, big
--          endian: now (5), skew (4); see filter.lua. The changes have the instants of a clock that must be right.
-- read     ARGV[2] the known version; nothing: none. [3] where to continue: nothing at first, then what the previous
--          reply names; t<c>: at the latest c packed records
-- pack     ARGV[2] TTL in milliseconds, [3] version up to which the log was read, [4] m as it was read, [5] the next m,
--          [6] nothing, or a nonce: then [7] has the freed instants; [8] number of fields to remove, then their names,
--          then packed records: name, content, name, content …
--
-- Reply    append  the version before, the version now, m
--          read    the version, m, the freed instants,
--                  n the known version is the latest, i the records after it follow, w a page of the whole log follows,
--                  x the log has changed: start again,
--                  where to continue, or nothing; then name and content of each record
--          pack    D done, the version before, the version now; N the log has changed, and nothing was written
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
else
  valid = false
end
if not valid then return redis.error_reply('BADARG a log, an operation and its arguments') end

local head = call('HMGET', key, '', 'm', 'f')
local version, meta, freed = head[1] or '', head[2] or '', head[3] or ''
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

if op == 'r' then
  local reply, size = {version, meta, freed, 'w', ''}, 0
  local at = ARGV[3]
  if at == '' then
    if ARGV[2] == version then
      reply[4] = 'n'
      return reply
    end
    at = 'p' .. first
    if id and ARGV[2] ~= '' and within(ARGV[2]) then
      local _, _, known = parse(ARGV[2])
      reply[4], at = 'i', decimal(known + 1)
    end
  elseif ARGV[2] ~= '' and not (id and within(ARGV[2])) then
    reply[4] = 'x'
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
      reply[5] = 'p' .. decimal(n)
      return reply
    end
    n = packed + 1
  end
  if n <= packed then
    reply[4] = 'x'
    return reply
  end
  n = add('', n, number or 0, true)
  if not n then return redis.error_reply('BADLOG the log lacks a record') end
  if n <= (number or 0) then reply[5] = decimal(n) end
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
