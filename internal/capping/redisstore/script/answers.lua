-- Adds the answers that an instance has given about a message on a channel.
--
-- KEYS[1]  the answers about the message, a hash: see Args.Answers in answers.go. Field "" holds the latest ${FLUSHES}
--          flushes, field m the message's text
-- KEYS[2]  the index of the partition, a sorted set: the channel (1) and the message's text, by the last call
-- KEYS[3]  the message's text; the key exists while the message is remembered
-- KEYS[4]  the index of the partition and of the last call's period, a sorted set: as KEYS[2], by the asked users
-- ARGV[1]  TTL in milliseconds, from the last call
-- ARGV[2]  ${FLUSH} bytes that name the flush: a flush that is retried after a lost reply adds nothing
-- ARGV[3]  the message's text, [4] the channel
-- ARGV[5]  1: a message without stored data is counted from now on
-- ARGV[6]  the first call or nothing, [7] the last call: milliseconds since 2024
-- ARGV[8]  versions of the configuration, one per line
-- ARGV[9]… field, number, field, number …
--
-- Reply    D added, N ignored or added before
-- Errors   BADARG …: nothing was written
-- Cost     linear in the fields.
local call = redis.call
local answers, index, message, sizes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local keep, flush, text, channel, first, last = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[6], tonumber(ARGV[7])
if #KEYS ~= 4 or #ARGV < 8 or #ARGV % 2 ~= 0 or not (keep and keep >= 1) or #flush ~= ${FLUSH} or not last then
  return redis.error_reply('BADARG four keys and answers')
end
local fields = call('HLEN', answers)
if fields == 0 and ARGV[5] ~= '1' and not call('GET', message) then return 'N' end

local before = call('HMGET', answers, '', channel .. 'f', channel .. 'l', channel .. 'v')
local flushes = before[1] or ''
for at = 1, #flushes, ${FLUSH} do
  if string.sub(flushes, at, at + ${FLUSH} - 1) == flush then return 'N' end
end
call('HSET', answers, '', string.sub(flushes .. flush, -${FLUSHES} * ${FLUSH}), 'm', text)
if first ~= '' and (not before[2] or tonumber(first) < tonumber(before[2])) then call('HSET', answers, channel .. 'f', first) end
if not before[3] or last > tonumber(before[3]) then call('HSET', answers, channel .. 'l', ARGV[7]) else last = tonumber(before[3]) end

-- Each version ends with a newline; the first ${CONFIGS} versions are kept.
local versions = before[4] or ''
local _, known = string.gsub(versions, '\n', '')
for version in string.gmatch(ARGV[8], '[^\n]+\n') do
  if known < ${CONFIGS} and not string.find('\n' .. versions, '\n' .. version, 1, true) then
    versions, known = versions .. version, known + 1
  end
end
if versions ~= (before[4] or '') then call('HSET', answers, channel .. 'v', versions) end

-- The names are those of limits, segments and sets. Each new configuration may bring others, so their number is
-- limited.
for i = 9, #ARGV, 2 do
  if fields < ${ANSWER_FIELDS} or call('HEXISTS', answers, ARGV[i]) == 1 then call('HINCRBY', answers, ARGV[i], ARGV[i + 1]) end
end
call('PEXPIRE', answers, ARGV[1])

local time = call('TIME')
local member = string.char(tonumber(channel)) .. text
call('ZADD', index, string.format('%.0f', last), member)
call('ZREMRANGEBYSCORE', index, '-inf', string.format('(%.0f', time[1] * 1000 - ${EPOCH} - keep))
call('PEXPIRE', index, ARGV[1])

-- An index by asked users expires as a whole, some time after its period.
call('ZADD', sizes, call('HGET', answers, channel .. 'q') or '0', member)
call('PEXPIRE', sizes, string.format('%.0f', keep + ${PERIOD}))
return 'D'
