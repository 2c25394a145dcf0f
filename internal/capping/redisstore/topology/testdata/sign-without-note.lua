-- Looks at the sign of a partition, and renews it in two steps, which are two calls.
--
-- The mark is a hash and is written as logs are: by several commands of one script,
-- which Redis keeps as one transaction. The sign is a string, is written later and by
-- one command alone, and repeats the mark's time. A server that drops transactions
-- while it loads its append-only file thus has a sign that is later than its mark. A
-- file that ends early never leaves that.
--
-- KEYS[1]  the sign: milliseconds since 1970, the latest time that the server has shown.
--          With the fraction .5 the mark had that time before; with .75 the partition
--          is known to have lost records. Without a fraction it says nothing of the
--          mark: instances of older versions write it so, and read all three.
-- KEYS[2]  the mark. at: the latest time; anew: when somebody began anew with what was
--          left; and by the number of another partition "anew at": a time which that
--          partition is known to have reached
-- ARGV[1]  1: the mark's step; 2: the sign's step; 3: write down that records are lost
-- ARGV[2]  0: renew; 1: make what is missing; 2: as 1, and begin anew with what is left
-- ARGV[3]  milliseconds by which clocks of servers may differ
-- ARGV[4]  milliseconds for which the sign lasts; the mark outlasts it
-- ARGV[5]  and [6] anew and at, which the partition is known to have reached
-- ARGV[7]… partitions that this mark keeps a time for: number, anew, at, number, anew, at …
--
-- Reply    outcome, milliseconds, anew and at; then number, anew and at that the mark keeps.
--          found; made; and these, with which nothing was written:
--          gone: the sign is missing; dropped: the sign is later than the mark;
--          unmarked: the mark is missing, as where it was dropped or evicted;
--          older: the partition has reached a later time once;
--          ahead: the clock was ahead of now by the milliseconds, so that keys may have
--          expired that should not have
-- Errors   BADARG …: nothing was written.
-- Cost     constant.
local step, mode, skew = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local life, known_anew, known_at = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if #KEYS ~= 2 or #ARGV < 6 or #ARGV % 3 ~= 0 or not (step and mode and skew and life and known_anew and known_at) then
  return redis.error_reply('BADARG a sign')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local sign = redis.call('GET', KEYS[1])
local mark = redis.call('HMGET', KEYS[2], 'at', 'anew')
local said = tonumber(sign or 0) or 0
local seen = math.floor(said)
local claim = said - seen
local at, anew = tonumber(mark[1] or 0) or 0, tonumber(mark[2] or 0) or 0

local function whole(number) return string.format('%d', number) end

local function answer(outcome, by)
  local reply = {outcome, whole(by), whole(anew), whole(at)}
  for i = 7, #ARGV, 3 do
    local kept_anew, kept_at = string.match(redis.call('HGET', KEYS[2], ARGV[i]) or '', '^(%d+) (%d+)$')
    reply[#reply + 1] = ARGV[i]
    reply[#reply + 1] = kept_anew or '0'
    reply[#reply + 1] = kept_at or '0'
  end
  return reply
end

if not sign and (mode == 0 or step == 3) then return answer('gone', 0) end
if step == 3 then
  redis.call('SET', KEYS[1], whole(seen) .. '.75', 'PX', ARGV[4])
  return answer('dropped', 0)
end
if sign and mode < 2 then
  if claim == 0.5 and not mark[1] then return answer('unmarked', 0) end
  if claim == 0.75 or claim > 0 and seen > at then return answer('dropped', math.max(seen - at, 0)) end
  if anew < known_anew or anew == known_anew and at < known_at then return answer('older', math.max(known_at - at, 0)) end
  if seen - now > skew then return answer('ahead', seen - now) end
end

local outcome = sign and 'found' or 'made'
if step == 2 then
  redis.call('SET', KEYS[1], at > 0 and whole(at) .. '.5' or whole(math.max(seen, now)), 'PX', ARGV[4])
  return answer(outcome, 0)
end
if mode == 2 or not sign then
  at, anew = now, now
else
  at = math.max(at, seen, now)
end
local fields = {'at', whole(at), 'anew', whole(anew)}
for i = 7, #ARGV, 3 do
  local kept_anew, kept_at = string.match(redis.call('HGET', KEYS[2], ARGV[i]) or '', '^(%d+) (%d+)$')
  kept_anew, kept_at = tonumber(kept_anew or 0), tonumber(kept_at or 0)
  local told_anew, told_at = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if told_anew > kept_anew or told_anew == kept_anew and told_at > kept_at then
    fields[#fields + 1] = ARGV[i]
    fields[#fields + 1] = ARGV[i + 1] .. ' ' .. ARGV[i + 2]
  end
end
redis.call('HSET', KEYS[2], unpack(fields))
redis.call('PEXPIRE', KEYS[2], whole(life + 86400000))
return answer(outcome, 0)
