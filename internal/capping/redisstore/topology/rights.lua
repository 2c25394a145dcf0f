-- Tries each command of the other scripts once, to find the commands that the user may not run. The
-- script leaves no data behind.
--
-- KEYS[1]  a key without a value, if the server holds the key's slot
-- ARGV[1]  otherwise the same key as an argument, for example on a replica. The server checks rights
--          first, so the script still tries every command, and no command has an effect there.
--
-- Reply    an array: the name and the error of each failed command
-- Cost     constant.
local key = KEYS[1] or ARGV[1]
local failed = {}

-- try runs a command, records an error, and reports whether the user may run the command.
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
try('ZREVRANGEBYSCORE', key, '0', '0')
local drops, expires, deletes = try('HDEL', key, '0'), try('PEXPIRE', key, '1'), try('DEL', key)
if drops or expires or deletes then
  try('HSET', key, '0', '0')
  try('HINCRBY', key, '0', '1')
  redis.pcall('PEXPIRE', key, '1')
  redis.pcall('HDEL', key, '0')
end
return failed
