-- Removes the log of one user, whatever the log contains.
--
-- KEYS[1]  bucket
-- ARGV[1]  field
-- ARGV[2]  header, ${STAMP_HEADER} bytes, big endian: now (5), skew (4); see filter.lua
--
-- Reply    D the log was removed, N there was no log, T the key is of another type
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written.
-- Cost     constant.
if #KEYS ~= 1 or #ARGV ~= 2 or ${NO_FIELD} or #ARGV[2] ~= ${STAMP_HEADER} then
  return redis.error_reply('BADARG one key, one field and a header')
end
local now, skew = struct.unpack('${STAMP_FORMAT}', ARGV[2])
local refusal = clockskew(now, skew)
if refusal then return refusal end
local gone = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(gone) == 'table' and gone.err then
  if wrongtype(gone.err) then return 'T' end
  return redis.error_reply(gone.err)
end
if gone == 0 then return 'N' end
if redis.call('HLEN', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], '') == 1 then redis.call('DEL', KEYS[1]) end
return 'D'
