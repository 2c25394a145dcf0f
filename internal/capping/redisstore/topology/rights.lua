-- Runs each command of the other scripts once and leaves nothing behind, to
-- find out which of them the user may not run.
--
-- KEYS[1]  a key that holds nothing. For a server that may not hold it, such as a
--          replica, it is
-- ARGV[1]  instead: rights are looked at before anything else, so that there
--          every command is tried and none has an effect.
--
-- Reply    an array: a command, its error, for each one that failed for whatever reason
-- Cost     constant.
local key = KEYS[1] or ARGV[1]
local failed = {}

-- try reports whether the command may be run.
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) ~= 'table' or not reply.err then return true end
  failed[#failed + 1] = command
  failed[#failed + 1] = reply.err
  return not string.find(reply.err, '^ERR The user') and not string.find(reply.err, '^ERR ACL failure') and not string.find(reply.err, '^ERR Unknown')
end

try('TIME')
try('GET', key)
try('HGET', key, '0')
try('SET', key, '', 'XX')
try('HMGET', key, '0')
try('HLEN', key)
try('HEXISTS', key, '0')
try('HSCAN', key, '0')
try('GETRANGE', key, '0', '0')
try('SETRANGE', key, '0', '')
try('ZADD', key, 'XX', '0', '')
try('ZREMRANGEBYSCORE', key, '0', '0')
local drops, expires, deletes = try('HDEL', key, '0'), try('PEXPIRE', key, '1'), try('DEL', key)
if drops or expires or deletes then
  try('HSET', key, '0', '0')
  try('HINCRBY', key, '0', '1')
  redis.pcall('PEXPIRE', key, '1')
  redis.pcall('HDEL', key, '0')
end
return failed
