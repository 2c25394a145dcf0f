-- Marks the counts of a message in one partition as lower bounds. The mark comes before a script records or removes
-- sends without counting them. While a slot is being moved, its keys are on two nodes, and a script reaches one key
-- only.
--
-- KEYS[1]  the message's counts, see counts.lua
-- ARGV[1]  now, ARGV[2] keep: milliseconds
-- ARGV[3]  1: also mark a message without counts; 0: ignore such a message, because no count of it is missing
--
-- The field ${AT_LEAST} is the mark; its value is the number of times it was set.
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
