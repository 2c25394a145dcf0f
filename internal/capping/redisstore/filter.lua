-- Judges one send for the users of one partition and records it where allowed.
-- The rules are those of capping.Judge and capping.Log.Record.
--
-- KEYS     buckets; one may come several times
-- ARGV[1]  header, 41 bytes, big endian: now (5), since (5), retention (6), keep (6), life (6),
--          skew (4), record (1: 0 or 1), channel (1), last group (1), token (6)
-- ARGV[2]  rules, group by group: count (1), then for each rule
--          max (2), hold (6), start (5), until (5), has channels (1), if so their bits (32)
-- ARGV[3]  users, key by key: count (1), a field each (1), then a group each (1)
--
-- Instants (now, since, start, until) are milliseconds since 2024-01-01 UTC,
-- durations (retention, keep, life, hold, skew) are milliseconds.
-- since: a send of the token recorded at or after it is this call's own, of an
-- attempt whose answer was lost. keep: a key outlives its newest entry by so
-- much; life: the TTL that is set when it would not. skew 0: no guard.
--
-- Reply    a string, user by user in the order of ARGV[3]:
--            A allowed, R replayed,
--            D denied, then rule (1) and the instant of the entry that has to leave (5; all 255: never),
--            C the log is corrupt, T the key is of another type (both: nothing done)
--          It ends early, at a user of a later key, when the call has used up its share of time.
-- Errors   BADARG …: nothing was written. CLOCKSKEW <milliseconds>: nothing was written.
--
-- A bucket's field "" holds: instant until which the TTL is set (5), age (1):
-- what the TTL was extended by since idle users were last dropped, in units of life - keep.
--
-- Cost: an HMGET per key, an HSET per key with allowed users, a PEXPIRE where
-- the TTL has to grow; linear in the users and in the bytes of their logs.
local byte, char, sub, find, concat = string.byte, string.char, string.sub, string.find, table.concat
local pack, scan, unpack, call, try = struct.pack, struct.unpack, unpack, redis.call, redis.pcall
local ENTRY, BOUND = 12, 1000
local WORK = 200000  -- bytes of logs after which a call ends early
local SWEEP_AGE, SWEEPS = 32, 1
local NEVER = '\255\255\255\255\255'
local NAMES = 'c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1'

local header, rules, users = ARGV[1], ARGV[2], ARGV[3]
if #ARGV ~= 3 or #header ~= 41 then
  return redis.error_reply('BADARG header of ' .. #(header or '') .. ' bytes in ' .. #ARGV .. ' arguments')
end
local now, since, retention, keep, life, skew, record, channel, last_group, token =
  scan('>I5I5I6I6I6I4BBBc6', header)
if not (now < 1099511627775) or not (keep >= 1 and keep < life and life <= 315360000000) or not (retention <= keep)
  or not (record <= 1) or #KEYS == 0 then
  return redis.error_reply('BADARG header out of range')
end
local at = 1
for k = 1, #KEYS do
  local count = byte(users, at)
  if not count or count < 1 or count > 32 then return redis.error_reply('BADARG users of key ' .. k) end
  at = at + 1 + 2 * count
end
if at ~= #users + 1 then return redis.error_reply('BADARG users of ' .. #users .. ' bytes') end

if skew > 0 then
  local time = call('TIME')
  local off = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000 - 1704067200000 - now
  if not (off <= skew and off >= -skew) then
    return redis.error_reply('CLOCKSKEW ' .. string.format('%d', off))
  end
end

local horizon = now - retention
local entry = pack('>I5B', now, channel) .. token
local tail = sub(entry, 6)
local no_token = token == '\0\0\0\0\0\0'

local function instant(log, offset)
  local a, b, c, d, e = byte(log, offset, offset + 4)
  return (((a * 256 + b) * 256 + c) * 256 + d) * 256 + e
end

-- members is the set of channels of a rule, by number.
local function members(bits)
  local set = {}
  for i = 1, 32 do
    local b, n = byte(bits, i), 7
    while b > 0 do
      if b >= 2 ^ n then
        set[(i - 1) * 8 + n] = true
        b = b - 2 ^ n
      end
      n = n - 1
    end
  end
  return set
end

-- parse reads the rules of every group. A rule counts entries later than
-- after; low is the least after of a group, none the rule that denies always.
local parsed = {}
local function parse()
  local p = 1
  for g = 0, last_group do
    local group = {low = now, count = byte(rules, p)}
    p = p + 1
    for r = 1, group.count do
      local max, hold, start, untl, limited
      max, hold, start, untl, limited, p = scan('>I2I6I5I5B', rules, p)
      local after = start - 1
      if hold > 0 then after = now - hold end
      if after < horizon then after = horizon end
      local rule = {max = max, after = after, hold = hold, untl = untl, id = char(r - 1)}
      if limited == 1 then
        rule.channels = members(sub(rules, p, p + 31))
        p = p + 32
      end
      if after < group.low then group.low = after end
      if max == 0 and not group.none then group.none = 'D' .. rule.id .. NEVER end
      group[r] = rule
    end
    parsed[g] = group
  end
  return p == #rules + 1
end
local ok, complete = pcall(parse)
if not ok or not complete then return redis.error_reply('BADARG rules of ' .. #rules .. ' bytes') end

-- recorded is when the token was recorded, or nil.
local function recorded(log, hit)
  while hit do
    if hit % ENTRY == 7 then
      local at = instant(log, hit - 6)
      if at > horizon then return at end
    end
    hit = find(log, token, hit + 1, true)
  end
end

-- nth is the offset of the n-th newest entry of the channels, or 0.
local function nth(log, n, channels)
  for offset = #log - ENTRY + 1, 1, -ENTRY do
    if channels[byte(log, offset + 5)] then
      n = n - 1
      if n == 0 then return offset end
    end
  end
  return 0
end

-- denial is the reply for a user whom a rule denies, or nil.
local function denial(log, size, newest, group)
  if group.none then return group.none end
  local latest, reply = 0, nil
  for r = 1, group.count do
    local rule = group[r]
    if newest > rule.after then
      local offset
      if rule.channels then
        offset = nth(log, rule.max, rule.channels)
      else
        offset = size - rule.max * ENTRY + 1
      end
      if offset > 0 then
        local at = instant(log, offset)
        if at > rule.after then
          local frees = at + rule.hold
          if frees < rule.untl then frees = rule.untl end
          if frees > latest then
            latest = frees
            reply = 'D' .. rule.id .. sub(log, offset, offset + 4)
          end
        end
      end
    end
  end
  return reply
end

-- bounded is the log without its channel's oldest entry, when it has BOUND of them.
local function bounded(log)
  local oldest, n = nil, 0
  for offset = 1, #log, ENTRY do
    if byte(log, offset + 5) == channel then
      oldest = oldest or offset
      n = n + 1
    end
  end
  if n < BOUND then return log end
  return sub(log, 1, oldest - 1) .. sub(log, oldest + ENTRY)
end

-- sweep drops the logs of a bucket that hold nothing later than the horizon.
local function sweep(key)
  local all, dead = call('HGETALL', key), {}
  for i = 1, #all, 2 do
    local size = #all[i + 1]
    if all[i] ~= '' and size % ENTRY == 0 and (size == 0 or instant(all[i + 1], size - 11) <= horizon) then
      dead[#dead + 1] = all[i]
    end
  end
  if #dead > 0 then call('HDEL', key, unpack(dead)) end
end

local sweeps = SWEEPS
-- store writes the fields of w, whose first two places are kept for the field
-- "", and sees to it that the key outlives the instant newest by keep.
local function store(key, meta, w, m, newest)
  local untl, age = 0, 0
  if meta then
    untl, age = instant(meta, 1), byte(meta, 6)
    if untl >= newest + keep then
      call('HSET', key, unpack(w, 3, m))
      return
    end
    age = age + math.floor((newest + life - untl) / (life - keep))
    if age > 255 then age = 255 end
  end
  local swept = age >= SWEEP_AGE and sweeps > 0
  if swept then
    age = 0
    sweeps = sweeps - 1
  end
  w[1], w[2] = '', pack('>I5B', math.min(newest + life, 1099511627774), age)
  call('HSET', key, unpack(w, 1, m))
  call('PEXPIRE', key, string.format('%d', newest + life - now))
  if swept then sweep(key) end
end

local out, o, p, work = {}, 0, 1, 0
for k = 1, #KEYS do
  local key, count = KEYS[k], byte(users, p)
  local fields = {scan(sub(NAMES, 1, 2 * count), users, p + 1)}
  local logs = try('HMGET', key, '', unpack(fields, 1, count))
  if logs.err then
    for i = 1, count do out[o + i] = 'T' end
    o = o + count
  else
    local codes = {byte(users, p + 1 + count, p + 2 * count)}
    local w, m, last = {'', ''}, 2, now
    for i = 1, count do
      local log, group, verdict = logs[i + 1], parsed[codes[i]], 'A'
      local write = entry
      if not log or log == '' then
        if group.none then verdict = group.none end
      else
        local size = #log
        work = work + size
        if size % ENTRY ~= 0 then
          verdict = 'C'
        else
          local hit = not no_token and find(log, token, 1, true)
          local own = hit and recorded(log, hit)
          if own then
            if own < since then verdict = 'R' end
            write = nil
          else
            local newest = instant(log, size - 11)
            if newest > group.low or group.none then
              verdict = denial(log, size, newest, group) or 'A'
            end
            if verdict == 'A' then
              if newest > now then
                if newest > last then last = newest end
                write = sub(log, size - 11, size - 7) .. tail
              end
              local first = 1
              while first < size and instant(log, first) <= horizon do first = first + ENTRY end
              if first > 1 then log = sub(log, first) end
              if #log >= BOUND * ENTRY then log = bounded(log) end
              write = log .. write
            end
          end
        end
      end
      o = o + 1
      out[o] = verdict
      if verdict == 'A' and write then
        w[m + 1], w[m + 2] = fields[i], write
        m = m + 2
      end
    end
    if m > 2 and record == 1 then store(key, logs[1], w, m, last) end
  end
  p = p + 1 + 2 * count
  if work > WORK then break end
end
return concat(out)
