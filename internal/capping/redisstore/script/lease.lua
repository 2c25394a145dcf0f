-- Keeps the leases of requests for permits. The service gives back the future permits of a request when its lease ends.
--
-- KEYS[1]  the order of the leases: a sorted set of requests, by the end in milliseconds since 1970
-- KEYS[2]  the leases: a hash, by request: the end as in the order, a space, the call that took the permits
-- ARGV[1]  k keep, e list what has ended, r remove
-- ARGV[2]  header, ${STAMP_HEADER} bytes, big endian: now (5), skew (4); see filter.lua
-- keep     ARGV[3] request, [4] how long the lease lasts from now on, in milliseconds, [5] the call, [6] TTL of both
--          keys in milliseconds
-- list     ARGV[3] largest number of leases
-- remove   ARGV[3] request. Its lease is removed if it has ended.
--
-- Two masters may differ by twice the skew, and a failover moves slots and leases from one to the other. So the list has
-- only leases that ended twice the skew ago. A lease that has ended is never extended: another caller of this script may
-- be giving back its permits.
--
-- Reply    keep    B begun, X extended, E the lease has ended and nothing was written, T a key is of another type
--          list    an array: request, milliseconds since the end, and call, of each lease, the newest first
--          remove  D done
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written.
-- Cost     list: linear in the bytes of the reply; else logarithmic in the number of leases.
local action, header = ARGV[1], ARGV[2] or ''
if #KEYS ~= 2 or #header ~= ${STAMP_HEADER} or #ARGV ~= (action == 'k' and 6 or 3) then
  return redis.error_reply('BADARG two keys, an action, a header and its arguments')
end
local stamp, skew = struct.unpack('${STAMP_FORMAT}', header)
local time = redis.call('TIME')
local refusal = clockskew(stamp, skew, time)
if refusal then return refusal end
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

-- read returns the end and the call of the lease in its stored form.
local function read(lease)
  local ends, call = string.match(lease or '', '^(%d+) (.*)$')
  return tonumber(ends), call
end

if action == 'k' then
  local request, lasts, call = ARGV[3], tonumber(ARGV[4]), ARGV[5]
  if not lasts or lasts < 1 or not tonumber(ARGV[6]) then return redis.error_reply('BADARG a lease lasts a number of milliseconds') end
  local before = redis.pcall('HGET', KEYS[2], request)
  if before and before.err then
    if wrongtype(before.err) then return 'T' end
    return redis.error_reply(before.err)
  end
  local last, first = read(before)
  if last and last <= now then return 'E' end
  local state = last and 'X' or 'B'
  last, call = math.max(last or 0, now + lasts), first or call
  local text = string.format('%.0f', last)
  local added = redis.pcall('ZADD', KEYS[1], text, request)
  if type(added) == 'table' then
    if wrongtype(added.err) then return 'T' end
    return redis.error_reply(added.err)
  end
  redis.call('HSET', KEYS[2], request, text .. ' ' .. call)
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
  return state
elseif action == 'e' then
  local ended = redis.call('ZREVRANGEBYSCORE', KEYS[1], string.format('%.0f', now - 2 * skew), '-inf', 'LIMIT', '0', ARGV[3])
  local list = {}
  for i, request in ipairs(ended) do
    local last, call = read(redis.call('HGET', KEYS[2], request))
    list[3 * i - 2], list[3 * i - 1], list[3 * i] = request, string.format('%.0f', now - (last or 0)), call or ''
  end
  return list
elseif action == 'r' then
  local last = read(redis.call('HGET', KEYS[2], ARGV[3]))
  if last and last > now then return 'D' end
  -- Two commands that the store's user may run, instead of ZREM.
  redis.call('ZADD', KEYS[1], '-1', ARGV[3])
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-1', '-1')
  redis.call('HDEL', KEYS[2], ARGV[3])
  return 'D'
end
return redis.error_reply('BADARG unknown action')
