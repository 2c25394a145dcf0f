-- Marks the counts of a message in one partition as lower bounds. The mark comes before a script records or removes
-- sends that it cannot count: the keys of a slot that is half moved are on two nodes, and a script reaches one key.
--
-- KEYS[1]  the message's counts, see counts.lua
-- ARGV[1]  now, ARGV[2] keep: milliseconds
-- ARGV[3]  1: mark a message without counts too; 0: leave it as it is, since nothing would be counted of it
--
-- The field ${AT_LEAST} is the mark. It counts how often it was set.
--
-- Reply    D
-- Cost     constant.
local try = redis.pcall
local now, keep = tonumber(ARGV[1]), tonumber(ARGV[2])
if #KEYS ~= 1 or #ARGV ~= 3 or not now or not keep then return redis.error_reply('BADARG a key, times and a mode') end
local counts, field, new = KEYS[1], '${AT_LEAST}', 1
local fields = ARGV[3] == '1' or try('HLEN', counts)
if fields == true or type(fields) == 'number' and fields > 0 then
  ${COUNT_SENDS}
end
return 'D'
