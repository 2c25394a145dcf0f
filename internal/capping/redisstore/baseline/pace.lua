-- The usual pacer: one sorted set per provider, and one call per request. Only allowed requests are recorded.
--
-- KEYS[1]  the provider's sorted set; scores are microseconds
-- ARGV     max, window in microseconds, TTL in milliseconds, member
-- Reply    1 allowed and recorded, 0 denied
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
