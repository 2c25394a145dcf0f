-- Judges one send for the users of one partition, and records it for the users who are allowed to receive it.
-- The rules are those of capping.Judge and capping.Log.Record.
--
-- KEYS     buckets; a bucket may come several times. With record ${COUNT}, the message's counts follow (see counts.lua).
--          With ARGV[4], the log of live changes is last (see live.lua)
-- ARGV[1]  header, ${FILTER_HEADER} bytes, big endian: now (5), since (5), retention (6), forget (6), keep (6),
--          life (6), skew (4), record (1), channel (1), last group (1), token (6)
-- ARGV[2]  rules, group by group: count (1), then for each rule
--          max (2), hold (6), start (5), until (5), kind (1: 1 has channels, 2 is a shadow rule, 3 both),
--          and with channels their bits (32). A shadow rule is among the first ${SHADOWS} rules, and denies nobody.
-- ARGV[3]  users, key by key: count (1), then a field for each user (${FIELD_NOTE}), then a group for each user (1)
-- ARGV[4]  optional: the version of the log of live changes that the caller knows. With another version nobody is decided.
--
-- Instants (now, since, start, until) are milliseconds since 2024-01-01 UTC.
-- Durations (retention, forget, keep, life, hold, skew) are milliseconds.
-- retention: older entries, and entries of exactly this age, are ignored.
-- forget: older entries, and entries of exactly this age, are removed. No policy in force can see them.
-- since: the start of this call's first attempt. An entry of the token on the channel is this same send, a replay.
-- An entry at or after since was recorded by an attempt of this call whose reply was lost.
-- keep: a key must outlive its newest entry by this time. life: the TTL to set when the key would expire earlier.
-- skew: the clock tolerance; 0 turns the check off.
-- record: 0 no; 1 yes; ${COUNT} yes, and count the recorded sends.
--
-- Reply    a string, user by user in the order of ARGV[3]:
--            A allowed, R replayed,
--            S allowed, then the shadow rules that would have denied (4: 1 for the first, 2, 4, 8 …),
--            D denied, then rule (1) and the instant of the entry that has to leave (5; all 255: never),
--            C the log is corrupt, T the key is of another type (both: nothing was done)
--          The reply ends early when the call has used up its share of time.
--          Or L alone: the log of live changes has another version, and nothing was done.
-- Errors   BADARG …: nothing was written. CLOCKSKEW <milliseconds>: nothing was written.
--          Any other error of a command, such as a missing right.
--
-- The field "" of a bucket holds the instant until which the TTL is set (5), and an age (1): the growth of the TTL
-- since idle users were last dropped, in units of life - keep.
--
-- Cost: an HGET with ARGV[4], an HMGET per key, an HSET per key with allowed users, a PEXPIRE when the TTL must grow, and an HINCRBY for the
-- count; linear in the users and in the bytes of their logs.
local byte, char, sub, find, rep, concat = string.byte, string.char, string.sub, string.find, string.rep, table.concat
local pack, scan, unpack, call, try = struct.pack, struct.unpack, unpack, redis.call, redis.pcall
-- Rules and logs are first compared in units of 65.536 s, which are the upper three bytes of a stored instant. This
-- decides most cases at half the cost.
local COARSE = 65536
-- UNBOUNDED is the span of a rule that every log satisfies.
local UNBOUNDED = 1e9

local header, rules, users, known = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if (#ARGV ~= 3 and #ARGV ~= 4) or #header ~= ${FILTER_HEADER} then
  return redis.error_reply('BADARG header of ' .. #(header or '') .. ' bytes in ' .. #ARGV .. ' arguments')
end
local now, since, retention, forget, keep, life, skew, record, channel, last_group, token = scan('${FILTER_FORMAT}', header)
if not (now < ${NEVER}) or not (keep >= 1 and keep < life and life <= ${LONGEST_LIFE}) or not (retention <= forget and forget <= keep)
  or not (record <= ${COUNT}) then
  return redis.error_reply('BADARG header out of range')
end
local at, buckets = 1, #KEYS
if record == ${COUNT} then buckets = buckets - 1 end
if known then buckets = buckets - 1 end
if buckets < 1 then return redis.error_reply('BADARG no buckets') end
for k = 1, buckets do
  local count = byte(users, at)
  if not count or count < 1 or count > ${KEY_USERS} then return redis.error_reply('BADARG users of key ' .. k) end
  at = at + 1 + ${GROUPED_SIZE}
end
if at ~= #users + 1 then return redis.error_reply('BADARG users of ' .. #users .. ' bytes') end

local refusal = clockskew(now, skew)
if refusal then return refusal end
if known and (call('HGET', KEYS[#KEYS], '') or '') ~= known then return 'L' end

${FIELD_NAMES}

local horizon, oblivion = now - retention, now - forget
local now_coarse, oblivion_coarse = (now - now % COARSE) / COARSE, (oblivion - oblivion % COARSE) / COARSE
local entry = pack('>I${INSTANT}B', now, channel) .. token
local recorded = record > 0 and entry -- the entry for allowed users
local no_token = token == '\0\0\0\0\0\0'

-- A group of rules is an array:
--   [1]    the reply for users without entries, false for allowed
--   [2]    the least coarse "after" of its rules
--   [3]    the number of its rules
--   [4]    the rare properties, or false: by rule its channels; by the negative number of a shadow rule its bit;
--          by 0 the bits of the shadow rules that would always deny
--   [${PLACES}]…   ${PLACES} places for each rule: span, after, after in coarse units, hold, until. The rule denies
--          when the entries later than after have more than span bytes.
local parsed = {}
local p, whole = 1, true
for g = 0, last_group do
  local count = byte(rules, p) or 0
  local group = {false, now_coarse + 1, count, false, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil} -- room for two rules
  p = p + 1
  for r = 1, count do
    if p + ${RULE} > #rules + 1 then
      whole = false
      break
    end
    local max, hold, start, untl, kind
    max, hold, start, untl, kind, p = scan('${RULE_FORMAT}', rules, p)
    local after, place = start - 1, ${PLACES} * r
    if hold > 0 then after = now - hold end
    if after < horizon then after = horizon end
    local rough = (after - after % COARSE) / COARSE
    if rough < group[2] then group[2] = rough end
    group[place], group[place + 1], group[place + 2] = max * ${ENTRY} - 1, after, rough
    group[place + 3], group[place + 4] = hold, untl
    if max == 0 and kind < 2 and not group[1] then group[1] = 'D' .. char(r - 1) .. pack('>I${INSTANT}', ${NEVER}) end
    if kind > 0 then
      group[4] = group[4] or {[0] = 0}
      if kind % 2 == 1 then
        group[4][r] = {p - 1} -- where the channel bits begin; then known results by channel
        p = p + ${CHANNEL_BITS}
      end
      if kind >= 2 then
        if kind > 3 or r > ${SHADOWS} then whole = false end
        group[4][-r] = 2 ^ (r - 1)
        if max == 0 then group[place], group[4][0] = UNBOUNDED, group[4][0] + 2 ^ (r - 1) end
      end
    end
  end
  if group[4] and group[4][0] > 0 then group[1] = group[1] or 'S' .. pack('>I${SHADOW}', group[4][0]) end
  parsed[g] = group
end
if not whole or p ~= #rules + 1 then return redis.error_reply('BADARG rules of ' .. #rules .. ' bytes') end

-- Functions for rare cases use only their arguments, because each call of the script creates them again. With captured
-- variables a call of one user cost 15 % more.

-- within reports whether the channels include the channel one.
local function within(channels, one, rules)
  local found = channels[one + 2]
  if found == nil then
    local bits = string.byte(rules, channels[1] + 1 + math.floor(one / 8))
    found = math.floor(bits / 2 ^ (one % 8)) % 2 == 1
    channels[one + 2] = found
  end
  return found
end

-- sent returns the position of the send's token in the log, searching from hit on, or nil.
local function sent(log, hit, token, channel, horizon)
  while hit do
    local first = hit - ${TOKEN_AT}
    if hit % ${ENTRY} == ${TOKEN_AT} + 1 and string.byte(log, first + ${CHANNEL_AT}) == channel
      and struct.unpack('>I${INSTANT}', log, first) > horizon then
      return hit
    end
    hit = string.find(log, token, hit + 1, true)
  end
end

-- remembered returns the log without the entries at or before oblivion.
local function remembered(log, oblivion)
  local past, live = 0, #log / ${ENTRY} -- entries known to be old, and the first entry known not to be
  while past < live do
    local middle = math.floor((past + live) / 2)
    if struct.unpack('>I${INSTANT}', log, middle * ${ENTRY} + 1) <= oblivion then past = middle + 1 else live = middle end
  end
  return string.sub(log, past * ${ENTRY} + 1)
end

-- bounded returns the log without the channel's oldest entry when the log has the maximum number of them.
local function bounded(log, channel)
  local oldest, n = nil, 0
  for offset = 1, #log, ${ENTRY} do
    if string.byte(log, offset + ${CHANNEL_AT}) == channel then
      oldest = oldest or offset
      n = n + 1
    end
  end
  if n < ${LOG_BOUND} then return log end
  return string.sub(log, 1, oldest - 1) .. string.sub(log, oldest + ${ENTRY})
end

-- sweep removes the key's logs that have no entry later than oblivion. When the logs have too many bytes, it examines
-- only some of them, and the next sweep starts elsewhere.
local function sweep(key, now, oblivion)
  local call = redis.call
  local cursor, seen, turns, held = string.format('%d', math.floor(now / 1009) % 256), 0, 0, call('HLEN', key)
  repeat
    local page, dead = call('HSCAN', key, cursor, 'COUNT', '32'), {}
    cursor = page[1]
    local all = page[2]
    if cursor == '0' then turns = turns + 1 end
    if #all == 2 * held then turns = 2 end
    for i = 1, #all, 2 do
      local name, log = all[i], all[i + 1]
      local size = #log
      seen = seen + size
      if name ~= '' and size % ${ENTRY} == 0 and (size == 0 or struct.unpack('>I${INSTANT}', log, size - (${ENTRY} - 1)) <= oblivion) then
        dead[#dead + 1] = name
      end
    end
    if #dead > 0 then call('HDEL', key, unpack(dead)) end
  until turns == 2 or seen > ${WORK}
end

local function instant(log, offset)
  local a, b, c, d, e = byte(log, offset, offset + 4)
  return (((a * 256 + b) * 256 + c) * 256 + d) * 256 + e
end

local work = 0 -- bytes of logs so far

-- judge returns the reply for a user whom a rule or a shadow rule denies, otherwise nil. It also returns the entry to
-- record. newest is in coarse units.
local function judge(log, size, newest, group, recorded)
  if group[1] and byte(group[1]) == ${DENIED} then return group[1] end
  local rare, latest, reply = group[4], 0, nil
  local shadows = rare and rare[0] or 0
  for r = 1, group[3] do
    local place = ${PLACES} * r
    local offset = size - group[place]
    if offset > 0 and newest >= group[place + 2] then
      local only = rare and rare[r]
      if only then -- the max-th newest entry of these channels
        local left = (group[place] + 1) / ${ENTRY}
        work = work + ${SCAN} * size
        offset = size + 1
        repeat
          offset = offset - ${ENTRY}
          if offset > 0 and within(only, byte(log, offset + ${CHANNEL_AT}), rules) then left = left - 1 end
        until left == 0 or offset <= 0
      end
      local stamped = offset > 0 and instant(log, offset)
      if stamped and stamped > group[place + 1] then
        local frees = stamped + group[place + 3]
        if frees < group[place + 4] then frees = group[place + 4] end
        if rare and rare[-r] then
          shadows = shadows + rare[-r]
        elseif frees > latest then
          latest = frees
          reply = 'D' .. char(r - 1) .. sub(log, offset, offset + 4)
        end
      end
    end
  end
  if reply then return reply end
  return shadows > 0 and 'S' .. struct.pack('>I${SHADOW}', shadows) or nil, recorded
end

-- stamps holds values of the field "" by age, for keys whose newest entry is of now.
local stamps, ttl, sweeps = nil, nil, 1 -- sweeps left in this call

local out, o, allowed = {}, 0, 0
local new, failed = 0, nil -- twice the number of recorded sends; the error that ended the call early
local w = {'', '', '', '', '', '', '', ''}
p = 1
-- These variables belong to the latest user's group. The first two rules decide most users, without a function call.
local code, group, none, fresh, low, span1, from1, span2, from2, more
-- With one group of rules no lookup is needed.
local alone = last_group == 0 and {0}
-- same is the previous log, with its verdict and its new value. Neighbours who received the same campaigns have the
-- same log. The value 0 equals no log.
local same, same_verdict, same_write = 0, nil, nil
for k = 1, buckets do
  local key, count = KEYS[k], byte(users, p)
  local fields = ${FIELDS}
  local codes = alone or {byte(users, p + 1 + ${FIELDS_SIZE}, p + ${GROUPED_SIZE})}
${NAME_FIELDS}
  local logs = try('HMGET', key, '', unpack(fields, 1, count))
  local m, last, wrong = 2, now, logs.err and 'T'
  if wrong and not wrongtype(logs.err) then
    failed = logs.err
    break
  end
  for i = 1, count do
    if not alone and codes[i] ~= code or not code then
      code = codes[i]
      group = parsed[code]
      none, low, more = group[1], group[2], group[3] > 2 or group[4]
      span1, from1, span2, from2 = group[5] or UNBOUNDED, group[7], group[10] or UNBOUNDED, group[12]
      fresh, same = (not none or byte(none) ~= ${DENIED}) and recorded, 0
    end
    local log, verdict, write = logs[i + 1], wrong, nil
    if log == same then
      work, verdict, write = work + #log, same_verdict, same_write
    elseif not log or log == '' then
      verdict, write = wrong or none, fresh
    else
      same = log
      local size = #log
      work = work + size
      local hit = not no_token and find(log, token, 1, true)
      if hit then hit = sent(log, hit, token, channel, horizon) end
      if size % ${ENTRY} ~= 0 then
        verdict = 'C'
      elseif hit then
        if instant(log, hit - ${TOKEN_AT}) < since then verdict = 'R' end
      else
        -- Coarse times of the oldest entry, of the next one (a to f), and of the newest entry.
        local a, b, c, ${BETWEEN}, d, e, f = byte(log, 1, ${ENTRY} + 3)
        local oldest, second = (a * 256 + b) * 256 + c, d and (d * 256 + e) * 256 + f
        a, b, c = byte(log, size - (${ENTRY} - 1), size - (${ENTRY} - 3))
        local newest = (a * 256 + b) * 256 + c
        local doubt = none or more and newest >= low
        if size > span1 and newest >= from1 then
          a, b, c = byte(log, size - span1, size - span1 + 2)
          doubt = doubt or (a * 256 + b) * 256 + c >= from1
        end
        if size - span2 == 1 then
          doubt = doubt or oldest >= from2
        elseif size > span2 and newest >= from2 then
          a, b, c = byte(log, size - span2, size - span2 + 2)
          doubt = doubt or (a * 256 + b) * 256 + c >= from2
        end
        write = recorded
        if doubt then verdict, write = judge(log, size, newest, group, recorded) end
        if write and newest >= now_coarse and instant(log, size - (${ENTRY} - 1)) > now then -- an entry is never earlier than the newest one
          write = sub(log, size - (${ENTRY} - 1), size - (${ENTRY} - ${CHANNEL_AT})) .. sub(entry, ${CHANNEL_AT} + 1)
          last, same = math.max(last, instant(log, size - (${ENTRY} - 1))), 0
        end
        if write and oldest < oblivion_coarse and second and second > oblivion_coarse then -- only the oldest entry is too old
          log = sub(log, ${ENTRY} + 1)
        elseif write and oldest <= oblivion_coarse then
          log = remembered(log, oblivion)
        end
        if write and #log >= ${ENTRY} * ${LOG_BOUND} then
          work = work + ${SCAN} * #log
          log = bounded(log, channel)
        end
        if write then write = log .. write end
      end
      same_verdict, same_write = verdict, write
    end
    if verdict then
      if allowed > 0 then
        out[o + 1], o, allowed = rep('A', allowed), o + 1, 0
      end
      o = o + 1
      out[o] = verdict
    else
      allowed = allowed + 1
    end
    if write then
      w[m + 1], w[m + 2] = fields[i], write
      m = m + 2
    end
    if work > ${WORK} then break end
  end
  -- Write the items 3 to m of w, and make the key outlive the instant last by keep. A separate function would make a
  -- call of one user a tenth slower.
  if m > 2 and not wrong then
    new = new + m - 2
    local meta, age, untl = logs[1], 0, -1
    if meta and #meta == 6 then
      local a, b, c, d, e
      a, b, c, d, e, age = byte(meta, 1, 6)
      untl = (((a * 256 + b) * 256 + c) * 256 + d) * 256 + e
    end
    if untl >= last + keep then
      call('HSET', key, unpack(w, 3, m))
    else
      if untl >= 0 then age = math.min(age + math.floor((last + life - untl) / (life - keep)), 255) end
      local swept = age >= 32 and sweeps > 0
      if swept then age, sweeps = 0, sweeps - 1 end
      if not stamps then stamps, ttl = {}, string.format('%d', life) end
      local stamp, expire = stamps[age], ttl
      if last > now then
        stamp = pack('>I${INSTANT}B', math.min(last + life, ${NEVER} - 1), age)
        expire = string.format('%d', last + life - now)
      elseif not stamp then
        stamp = pack('>I${INSTANT}B', math.min(now + life, ${NEVER} - 1), age)
        stamps[age] = stamp
      end
      w[2] = stamp
      call('HSET', key, unpack(w, 1, m))
      local expires = try('PEXPIRE', key, expire)
      if type(expires) == 'table' and expires.err then -- the next write tries again
        call('HDEL', key, '')
        failed = expires.err
        break
      end
      if swept then sweep(key, now, oblivion) end
    end
  end
  p = p + 1 + ${GROUPED_SIZE}
  if work > ${WORK} then break end
end
if record == ${COUNT} then
  local counts, field = KEYS[buckets + 1], channel
  new = new / 2
  ${COUNT_SENDS}
end
if failed then return redis.error_reply(failed) end
out[o + 1] = rep('A', allowed)
return concat(out)
