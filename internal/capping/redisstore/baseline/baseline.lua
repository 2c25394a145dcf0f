-- The usual sliding log: one sorted set per user, and one call per user.
--
-- KEYS[1]  the user's sorted set; scores are milliseconds
-- ARGV     now, member, TTL in milliseconds, then for each limit: max, window in milliseconds
-- Reply    1 allowed and recorded, 0 denied
local now = tonumber(ARGV[1])
for i = 4, #ARGV, 2 do
  if redis.call('ZCOUNT', KEYS[1], '(' .. (now - tonumber(ARGV[i + 1])), '+inf') >= tonumber(ARGV[i]) then
    return 0
  end
end
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
