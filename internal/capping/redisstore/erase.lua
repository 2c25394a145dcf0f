-- Removes the log of one user, whatever it holds.
--
-- KEYS[1]  bucket
-- ARGV[1]  field
--
-- Reply    D it was there and is no more, N it was not there, T the key is of another type
-- Errors   BADARG …: nothing was written.
-- Cost     constant.
if #KEYS ~= 1 or #ARGV ~= 1 or #ARGV[1] < 1 or #ARGV[1] > 3 then return redis.error_reply('BADARG one key and one field') end
local gone = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(gone) == 'table' and gone.err then return 'T' end
if gone == 0 then return 'N' end
if redis.call('HLEN', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], '') == 1 then redis.call('DEL', KEYS[1]) end
return 'D'
