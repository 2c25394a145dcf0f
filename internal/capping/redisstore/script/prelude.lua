-- This text precedes every script that has a time stamp.

-- clockskew returns the error for a call that arrives more than skew milliseconds before or after its stamp now, else
-- nil. skew 0 turns the check off. time is the reply of TIME, if the script has it already.
local function clockskew(now, skew, time)
  if skew == 0 then return nil end
  time = time or redis.call('TIME')
  local off = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000 - ${EPOCH} - now
  if off <= skew and off >= -skew then return nil end
  return redis.error_reply('CLOCKSKEW ' .. string.format('%d', off))
end

-- wrongtype reports whether the error says that a key is of another type. A missing right is an error too, but the key
-- is good.
local function wrongtype(err) return string.sub(err, 1, 9) == 'WRONGTYPE' end
