-- Forgets the grants of a pacer: removes its log, and notes that its messages' logs from before now are void.
--
-- KEYS[1]  the pacer's log
-- KEYS[2]  the time until which the pacer's logs were forgotten: microseconds since 1970
-- ARGV[1]  header, ${STAMP_HEADER} bytes, big endian: now (5), skew (4); see filter.lua
-- ARGV[2]  maximum lifetime of a log in milliseconds
--
-- Reply    D done, T the note's key is of another type: nothing was written
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written.
-- Cost     constant.
local life = tonumber(ARGV[2])
if #KEYS ~= 2 or #ARGV ~= 2 or #ARGV[1] ~= ${STAMP_HEADER} or not (life and life >= 1) then
  return redis.error_reply('BADARG two keys, a header and a time to live')
end
local stamp, skew = struct.unpack('${STAMP_FORMAT}', ARGV[1])
local time = redis.call('TIME')
local refusal = clockskew(stamp, skew, time)
if refusal then return refusal end
local before = redis.pcall('GET', KEYS[2])
if before and before.err then
  if wrongtype(before.err) then return 'T' end
  return redis.error_reply(before.err)
end
-- A former master's clock may have been ahead, so an existing log may carry a time a little later than now. A new log
-- gets a time after this note; see pace.lua.
local mark = math.max(time[1] * 1000000 + time[2] + 1000 * skew, (tonumber(before or nil) or 0) + 1)
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], string.format('%.0f', mark), 'PX', ARGV[2])
return 'D'
