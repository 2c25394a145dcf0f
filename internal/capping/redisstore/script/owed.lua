-- Counts sends that a script recorded or removed while its slot was half moved, so that it could not reach the counts.
--
-- KEYS[1]  the message's counts, see counts.lua
-- ARGV[1]  now, ARGV[2] keep: milliseconds
-- ARGV[3]… field, number, field, number …: a channel's number for sends that were recorded; with r
--          behind it for those removed, which are counted where the channel is
--
-- Reply    D
-- Cost     linear in the fields.
local try = redis.pcall
local now, keep = tonumber(ARGV[1]), tonumber(ARGV[2])
if #KEYS ~= 1 or #ARGV % 2 ~= 0 or not now or not keep then return redis.error_reply('BADARG a key, times and fields') end
local counts = KEYS[1]
for i = 3, #ARGV, 2 do
  local field, new = ARGV[i], tonumber(ARGV[i + 1])
  local channel = string.match(field, '^(%d+)r$')
  if not channel then
    ${COUNT_SENDS}
  elseif try('HEXISTS', counts, channel) == 1 then
    try('HINCRBY', counts, field, new)
  end
end
return 'D'
