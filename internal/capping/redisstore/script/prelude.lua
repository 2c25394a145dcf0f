-- Stands before every script that is stamped.

-- The error for a call that comes more than skew before or after its stamp,
-- both milliseconds; nil when it does not, or when skew is 0: no guard. time is
-- what TIME said, where the script asked already.
local function clockskew(now, skew, time)
  if skew == 0 then return nil end
  time = time or redis.call('TIME')
  local off = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000 - ${EPOCH} - now
  if off <= skew and off >= -skew then return nil end
  return redis.error_reply('CLOCKSKEW ' .. string.format('%d', off))
end

-- Whether the error says that a key is of another type. No other error does: a
-- missing right is an error as well, and the key is good.
local function wrongtype(err) return string.sub(err, 1, 9) == 'WRONGTYPE' end
