-- Writes the format record, or makes it last longer.
--
-- KEYS[1]  the record
-- ARGV[1]  the record of this version
-- ARGV[2]  milliseconds for which it has to last
--
-- Reply    the record that is stored: ARGV[1], or the other one that was found and left alone
-- Errors   BADARG …: nothing was written.
-- Cost     constant.
local life = tonumber(ARGV[2])
if #KEYS ~= 1 or #ARGV ~= 2 or not life or not (life >= 1 and life <= 630720000000) then
  return redis.error_reply('BADARG record or its life')
end
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then return found end
if not found then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 and left < life then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
return ARGV[1]
