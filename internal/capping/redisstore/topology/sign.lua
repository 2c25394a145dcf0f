-- Checks the sentinel key of a partition and renews it. The renewal takes two calls, one for each step.
--
-- The mark is a hash. A script writes it like a log: with several commands, which Redis stores as one
-- transaction. The sentinel key is a string. A later call writes it with a single command and the
-- mark's time. A server that drops transactions while it loads its append-only file therefore has a
-- sentinel key that is later than its mark. A truncated file never causes this state.
--
-- KEYS[1]  the sentinel key: the latest time of the server, in milliseconds since 1970. The fraction
--          .5 means that the mark already had that time. The fraction .75 means that the partition
--          has lost records. No fraction says nothing about the mark: instances of older versions
--          write the time without a fraction, and can read all three forms.
-- KEYS[2]  the mark, with these fields:
--          at     the latest time
--          anew   when the partition was created, or started again with the remaining records
--          older  "anew at": a check found that the records since anew had lost the time at
--          NUMBER "anew at": a time that the partition with this number has reached
-- ARGV[1]  1: the mark's step; 2: the sentinel key's step; 3: record a loss
-- ARGV[2]  0: renew; 1: also create missing keys; 2: like 1, and start again with the remaining records
-- ARGV[3]  tolerated clock difference between servers in milliseconds
-- ARGV[4]  lifetime of the sentinel key in milliseconds; the mark lives longer
-- ARGV[5]  anew of the point that the partition is known to have reached
-- ARGV[6]  at of the same point
-- ARGV[7]… points of other partitions for this mark: number, anew, at, number, anew, at …
--
-- Reply    outcome, milliseconds, anew and at; then number, anew and at for each point in the mark.
--          found     the keys are complete
--          made      the keys were created
--          The other outcomes renew nothing:
--          gone      the sentinel key is missing
--          dropped   the sentinel key is later than the mark
--          unmarked  the mark is missing: the server dropped or evicted it
--          older     the partition had reached a later time before. The sentinel key and the mark record
--                    this outcome: .75 is for instances that ignore the mark's field, and the field is
--                    for instances that ignore fractions.
--          ahead     the server's clock was ahead by the milliseconds, so keys may have expired too early
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
local mark = redis.call('HMGET', KEYS[2], 'at', 'anew', 'older')
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

-- noted is the time in the mark's field "older", for the records since anew.
local noted_anew, noted = string.match(mark[3] or '', '^(%d+) (%d+)$')
if tonumber(noted_anew) ~= anew then noted = nil end

-- older records that the partition had reached a later time before. A mark without anew comes from an older version.
-- The sentinel key's step writes the mark too if the mark's step failed, for example while the server loaded its data.
local function older(reached)
  if step == 1 or not noted then
    redis.call('HSET', KEYS[2], 'older', whole(anew) .. ' ' .. whole(reached))
    redis.call('PEXPIRE', KEYS[2], whole(life + 86400000))
  end
  if step == 2 then redis.call('SET', KEYS[1], whole(seen) .. '.75', 'PX', ARGV[4]) end
  return answer('older', math.max(reached - at, 0))
end

if not sign and (mode == 0 or step == 3) then return answer('gone', 0) end
if step == 3 then
  redis.call('SET', KEYS[1], whole(seen) .. '.75', 'PX', ARGV[4])
  return answer('dropped', 0)
end
if sign and mode < 2 then
  if noted then return older(tonumber(noted)) end
  if claim == 0.5 and not mark[1] then return answer('unmarked', 0) end
  if claim == 0.75 or claim > 0 and seen > at then return answer('dropped', math.max(seen - at, 0)) end
  if anew < known_anew or anew == known_anew and at < known_at then return older(known_at) end
  if seen - now > skew then return answer('ahead', seen - now) end
end

local outcome = sign and 'found' or 'made'
if step == 2 then
  redis.call('SET', KEYS[1], at > 0 and whole(at) .. '.5' or whole(math.max(seen, now)), 'PX', ARGV[4])
  return answer(outcome, 0)
end
if mode == 2 or not sign then
  at, anew = now, math.max(now, anew + 1, known_anew + 1) -- later than every earlier start by any clock
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
