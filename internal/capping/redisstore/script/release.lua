-- Removes the sends of one message, on one channel or on all, from the logs of the users of one partition.
-- The rule is that of capping.Log.Release. Sends later than until stay, unless they are later than now by over twice skew.
--
-- KEYS     buckets; a bucket may come several times. With mode ${COUNT}, the message's counts follow (see counts.lua)
-- ARGV[1]  header, ${RELEASE_HEADER} bytes, big endian: now (5), skew (4), channel (1; 0: all channels), token (6),
--          until (5), mode (1: ${COUNT} count the removed sends); see filter.lua
-- ARGV[2]  users, key by key: count (1), then a field for each user (${FIELD_NOTE})
--
-- Reply    a byte for each user in the order of ARGV[2]: D the send was removed, N there was no send,
--          C the log is corrupt, T the key is of another type (both: nothing was done).
--          The reply ends early when the call has used up its share of time.
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written. The clock check and until protect new sends: a
--          delayed call must not remove a send that was recorded after the call's retry was answered.
-- Cost     an HMGET per key, an HSET and an HDEL per key with sends, an HINCRBY per channel; linear in the bytes of the logs.
local byte, sub, find, concat = string.byte, string.sub, string.find, table.concat
local unpack, call, try = unpack, redis.call, redis.pcall

local header, users = ARGV[1], ARGV[2]
if #ARGV ~= 2 or #header ~= ${RELEASE_HEADER} then return redis.error_reply('BADARG header or arguments') end
local now, skew, channel, token, till, mode = struct.unpack('${RELEASE_FORMAT}', header)
local at, buckets = 1, #KEYS
if mode == ${COUNT} then buckets = buckets - 1 end
if buckets < 1 then return redis.error_reply('BADARG no buckets') end
for k = 1, buckets do
  local count = byte(users, at)
  if not count or count < 1 or count > ${KEY_USERS} then return redis.error_reply('BADARG users of key ' .. k) end
  at = at + 1 + ${FIELDS_SIZE}
end
if at ~= #users + 1 then return redis.error_reply('BADARG users of ' .. #users .. ' bytes') end

local refusal = clockskew(now, skew)
if refusal then return refusal end

local gone = {} -- entries by channel

-- without returns the log without the send's entries, or nil when there are none.
local function without(log)
  local rest, from = nil, 1
  local hit = find(log, token, 1, true)
  while hit do
    from = hit + 1
    if hit % ${ENTRY} == ${TOKEN_AT} + 1 and (channel == 0 or byte(log, hit - (${TOKEN_AT} - ${CHANNEL_AT})) == channel) then
      local first = hit - ${TOKEN_AT}
      local sent = struct.unpack('>I${INSTANT}', log, first)
      if sent <= till or sent > now + 2 * skew then
        local of = byte(log, first + ${CHANNEL_AT})
        gone[of] = (gone[of] or 0) + 1
        log = sub(log, 1, first - 1) .. sub(log, first + ${ENTRY})
        rest, from = log, first
      end
    end
    hit = find(log, token, from, true)
  end
  return rest
end

local out, o, p, work, failed = {}, 0, 1, 0, nil
for k = 1, buckets do
  local key, count = KEYS[k], byte(users, p)
  local fields = ${FIELDS}
${TEXT_FIELDS}
  local logs = try('HMGET', key, unpack(fields, 1, count))
  if logs.err then
    if not wrongtype(logs.err) then
      failed = logs.err
      break
    end
    for i = 1, count do out[o + i] = 'T' end
    o = o + count
  else
    local keep, drop = {}, {}
    for i = 1, count do
      local log, result, rest = logs[i] or '', 'N', nil
      work = work + #log
      if #log % ${ENTRY} ~= 0 then result = 'C' else rest = without(log) end
      if rest then result = 'D' end
      if rest == '' then
        drop[#drop + 1] = fields[i]
      elseif rest then
        keep[#keep + 1] = fields[i]
        keep[#keep + 1] = rest
      end
      o = o + 1
      out[o] = result
      if work > ${WORK} then break end
    end
    if #keep > 0 then call('HSET', key, unpack(keep)) end
    if #drop > 0 then
      call('HDEL', key, unpack(drop))
      -- Delete the key when no user's log is left in it.
      if call('HLEN', key) == 1 and call('HEXISTS', key, '') == 1 then call('DEL', key) end
    end
  end
  p = p + 1 + ${FIELDS_SIZE}
  if work > ${WORK} then break end
end
if mode == ${COUNT} then
  local counts = KEYS[buckets + 1]
  for of, n in pairs(gone) do
    if try('HEXISTS', counts, of) == 1 then try('HINCRBY', counts, of .. 'r', n) end
  end
end
if failed then return redis.error_reply(failed) end
return concat(out)
