-- Looks at the sign of a partition: a key that is there as long as what is
-- recorded there is, and holds the latest time that its server has shown.
--
-- KEYS[1]  the sign: milliseconds since 1970
-- ARGV[1]  0: look at it and renew it; 1: make it where it is missing; 2: as 1, and take the clock as it is
-- ARGV[2]  milliseconds by which clocks of servers may differ
-- ARGV[3]  milliseconds for which it lasts
--
-- Reply    found; made; gone: it is missing; ahead and milliseconds: the clock was ahead of now by so
--          much, so that keys may have expired that should not have (both: nothing was written)
-- Errors   BADARG …: nothing was written.
-- Cost     constant.
local mode, skew = tonumber(ARGV[1]), tonumber(ARGV[2])
if #KEYS ~= 1 or #ARGV ~= 3 or not mode or not skew then return redis.error_reply('BADARG a sign') end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local sign = redis.call('GET', KEYS[1])
if not sign and mode == 0 then return {'gone'} end
local seen = tonumber(sign or 0) or 0
if seen - now > skew and mode < 2 then return {'ahead', string.format('%d', seen - now)} end
if seen < now or mode == 2 then seen = now end
redis.call('SET', KEYS[1], string.format('%d', seen), 'PX', ARGV[3])
return {sign and 'found' or 'made'}
