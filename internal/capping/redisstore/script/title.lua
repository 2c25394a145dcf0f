-- Gives a message a title.
--
-- KEYS[1]  the answers about the message, a hash: see answers.lua. Field t holds the title, field m the message's text
-- KEYS[2]  the message's text; the key exists while the message is remembered
-- ARGV[1]  TTL in milliseconds, while the message has no answers
-- ARGV[2]  the message's text, [3] the title; empty: none
-- ARGV[4]  1: a message without stored data may have a title
--
-- Reply    D done, N the message is not remembered: nothing was written
-- Errors   BADARG …: nothing was written
-- Cost     constant.
local call = redis.call
local answers, message = KEYS[1], KEYS[2]
local keep = tonumber(ARGV[1])
if #KEYS ~= 2 or #ARGV ~= 4 or not (keep and keep >= 1) then return redis.error_reply('BADARG two keys and a title') end
if call('HLEN', answers) == 0 then
  if ARGV[3] == '' then return 'D' end
  if ARGV[4] ~= '1' and not call('GET', message) then return 'N' end
end
call('HSET', answers, 'm', ARGV[2], 't', ARGV[3])
if call('HLEN', answers) <= 2 then call('PEXPIRE', answers, ARGV[1]) end
return 'D'
