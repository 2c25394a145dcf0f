-- Takes users from a client's rate budget, all of them or none. The algorithm is the generic cell rate algorithm, by
-- the node's clock.
--
-- KEYS[1]  the budget: the microsecond, since 1970, at which the budget is full again; a missing key means full
-- ARGV[1]  users per second
-- ARGV[2]  maximum number of users at once
-- ARGV[3]  users to take
--
-- Reply    taken (1 or 0), users available now, milliseconds until the same call would succeed (0 after a success),
--          milliseconds until the budget is full
-- Errors   BADARG …: nothing was written.
-- Cost     constant.
local rate, burst, users = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if #KEYS ~= 1 or #ARGV ~= 3 or not (rate and rate >= 1) or not (burst and burst >= 1) or not (users and users >= 0) then
  return redis.error_reply('BADARG a rate, a burst and users')
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local apart = 1000000 / rate -- microseconds per user
local whole = burst * apart
local full = tonumber(redis.call('GET', KEYS[1]) or now) or now
if full < now then full = now end
if full > now + whole then full = now + whole end -- the clock went back, or the burst became smaller
local after = full + users * apart
local taken, wait = 1, 0
if after - now > whole + 1 then -- one microsecond for rounding
  taken, wait = 0, after - now - whole
elseif users > 0 then
  full = after
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', string.format('%d', math.ceil((full - now) / 1000) + 1))
end
local left = math.floor((whole - (full - now)) / apart + 1e-6)
return {taken, math.max(left, 0), math.ceil(wait / 1000), math.ceil((full - now) / 1000)}
