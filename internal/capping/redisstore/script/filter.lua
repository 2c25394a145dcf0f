-- Judges one send for the users of one partition and records it where allowed.
-- The rules are those of capping.Judge and capping.Log.Record.
--
-- KEYS     buckets; one may come several times
-- ARGV[1]  header, 47 bytes, big endian: now (5), since (5), retention (6), forget (6), keep (6),
--          life (6), skew (4), record (1: 0 or 1), channel (1), last group (1), token (6)
-- ARGV[2]  rules, group by group: count (1), then for each rule
--          max (2), hold (6), start (5), until (5), has channels (1), if so their bits (32)
-- ARGV[3]  users, key by key: count (1), a field each (1: its number), then a group each (1)
--
-- Instants (now, since, start, until) are milliseconds since 2024-01-01 UTC,
-- durations (retention, forget, keep, life, hold, skew) are milliseconds.
-- retention: entries as old as that are not looked at; forget: those as old as
-- that, no less, are removed, since no policy in force can see them.
-- An entry of the token on the channel is this send: replayed. since: one
-- recorded at or after it is this call's own, of an attempt whose answer was
-- lost. keep: a key outlives its newest entry by so much; life: the TTL that is
-- set when it would not. skew 0: no guard.
--
-- Reply    a string, user by user in the order of ARGV[3]:
--            A allowed, R replayed,
--            D denied, then rule (1) and the instant of the entry that has to leave (5; all 255: never),
--            C the log is corrupt, T the key is of another type (both: nothing done)
--          It ends early when the call has used up its share of time.
-- Errors   BADARG …: nothing was written. CLOCKSKEW <milliseconds>: nothing was written.
--          Any other error of a command, such as a missing right.
--
-- A bucket's field "" holds: instant until which the TTL is set (5), age (1):
-- what the TTL was extended by since idle users were last dropped, in units of life - keep.
--
-- Cost: an HMGET per key, an HSET per key with allowed users, a PEXPIRE where
-- the TTL has to grow; linear in the users and in the bytes of their logs.
local byte, char, sub, find, rep, concat = string.byte, string.char, string.sub, string.find, string.rep, table.concat
local pack, scan, unpack, call, try = struct.pack, struct.unpack, unpack, redis.call, redis.pcall
local ENTRY, BOUND = 12, 1000 -- bytes; entries of one channel
local FULL = ENTRY * BOUND
local WORK = 200000 -- bytes of logs after which a call ends early
local SCAN = 4 -- so much more than reading it costs to look at each entry of a log
local SWEEP_AGE, SWEEPS = 32, 1
local NEVER = '\255\255\255\255\255'
-- Rules and logs are compared in units of 65.536 s first, the upper three bytes
-- of what is stored: that settles most questions, and costs half.
local COARSE = 65536

local header, rules, users = ARGV[1], ARGV[2], ARGV[3]
if #ARGV ~= 3 or #header ~= 47 then
  return redis.error_reply('BADARG header of ' .. #(header or '') .. ' bytes in ' .. #ARGV .. ' arguments')
end
local now, since, retention, forget, keep, life, skew, record, channel, last_group, token =
  scan('>I5I5I6I6I6I6I4BBBc6', header)
if not (now < 1099511627775) or not (keep >= 1 and keep < life and life <= 315360000000) or not (retention <= forget and forget <= keep)
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

local refusal = clockskew(now, skew)
if refusal then return refusal end

-- names of fields by number: constants cost no string per user. A call of few
-- users does better without the table.
local names
if #users > 12 then
  names = {[0] =
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15',
    '16', '17', '18', '19', '20', '21', '22', '23', '24', '25', '26', '27', '28', '29', '30', '31',
    '32', '33', '34', '35', '36', '37', '38', '39', '40', '41', '42', '43', '44', '45', '46', '47',
    '48', '49', '50', '51', '52', '53', '54', '55', '56', '57', '58', '59', '60', '61', '62', '63',
    '64', '65', '66', '67', '68', '69', '70', '71', '72', '73', '74', '75', '76', '77', '78', '79',
    '80', '81', '82', '83', '84', '85', '86', '87', '88', '89', '90', '91', '92', '93', '94', '95',
    '96', '97', '98', '99', '100', '101', '102', '103', '104', '105', '106', '107', '108', '109', '110', '111',
    '112', '113', '114', '115', '116', '117', '118', '119', '120', '121', '122', '123', '124', '125', '126', '127',
    '128', '129', '130', '131', '132', '133', '134', '135', '136', '137', '138', '139', '140', '141', '142', '143',
    '144', '145', '146', '147', '148', '149', '150', '151', '152', '153', '154', '155', '156', '157', '158', '159',
    '160', '161', '162', '163', '164', '165', '166', '167', '168', '169', '170', '171', '172', '173', '174', '175',
    '176', '177', '178', '179', '180', '181', '182', '183', '184', '185', '186', '187', '188', '189', '190', '191',
    '192', '193', '194', '195', '196', '197', '198', '199', '200', '201', '202', '203', '204', '205', '206', '207',
    '208', '209', '210', '211', '212', '213', '214', '215', '216', '217', '218', '219', '220', '221', '222', '223',
    '224', '225', '226', '227', '228', '229', '230', '231', '232', '233', '234', '235', '236', '237', '238', '239',
    '240', '241', '242', '243', '244', '245', '246', '247', '248', '249', '250', '251', '252', '253', '254', '255',
  }
end

local horizon, oblivion = now - retention, now - forget
local now_coarse, oblivion_coarse = (now - now % COARSE) / COARSE, (oblivion - oblivion % COARSE) / COARSE
local entry = pack('>I5B', now, channel) .. token
local no_token = token == '\0\0\0\0\0\0'

-- A group of rules is an array: the reply of a rule that denies always, or
-- false; the least coarse after of its rules; how many they are; the channels
-- of those that have any, by rule; then FIVE places for each rule: it denies at
-- more than span bytes of entries later than after; after again, coarse; hold;
-- until.
local FIVE = 5
local parsed = {}
local p, whole = 1, true
for g = 0, last_group do
  local count = byte(rules, p) or 0
  local group = {false, now_coarse + 1, count, false, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil} -- room for two rules
  p = p + 1
  for r = 1, count do
    if p + 18 > #rules then
      whole = false
      break
    end
    local max, hold, start, untl, limited
    max, hold, start, untl, limited, p = scan('>I2I6I5I5B', rules, p)
    local after, place = start - 1, FIVE * r
    if hold > 0 then after = now - hold end
    if after < horizon then after = horizon end
    local rough = (after - after % COARSE) / COARSE
    if rough < group[2] then group[2] = rough end
    group[place], group[place + 1], group[place + 2] = max * ENTRY - 1, after, rough
    group[place + 3], group[place + 4] = hold, untl
    if max == 0 and not group[1] then group[1] = 'D' .. char(r - 1) .. NEVER end
    if limited == 1 then
      group[4] = group[4] or {}
      group[4][r] = {p - 1} -- where their bits begin; then what was asked, by channel
      p = p + 32
    end
  end
  parsed[g] = group
end
if not whole or p ~= #rules + 1 then return redis.error_reply('BADARG rules of ' .. #rules .. ' bytes') end

local function instant(log, offset)
  local a, b, c, d, e = byte(log, offset, offset + 4)
  return (((a * 256 + b) * 256 + c) * 256 + d) * 256 + e
end

-- within reports whether the channels hold the one.
local function within(channels, one)
  local found = channels[one + 2]
  if found == nil then
    local bits = byte(rules, channels[1] + 1 + math.floor(one / 8))
    found = math.floor(bits / 2 ^ (one % 8)) % 2 == 1
    channels[one + 2] = found
  end
  return found
end

local work = 0 -- bytes of logs so far

-- denial is the reply for a user whom a rule denies, or nil. newest is coarse.
local function denial(log, size, newest, group)
  if group[1] then return group[1] end
  local channels, latest, reply = group[4], 0, nil
  for r = 1, group[3] do
    local place = FIVE * r
    local offset = size - group[place]
    if offset > 0 and newest >= group[place + 2] then
      local only = channels and channels[r]
      if only then -- the max-th newest entry of these channels
        local left = (group[place] + 1) / ENTRY
        work = work + SCAN * size
        offset = size + 1
        repeat
          offset = offset - ENTRY
          if offset > 0 and within(only, byte(log, offset + 5)) then left = left - 1 end
        until left == 0 or offset <= 0
      end
      local stamped = offset > 0 and instant(log, offset)
      if stamped and stamped > group[place + 1] then
        local frees = stamped + group[place + 3]
        if frees < group[place + 4] then frees = group[place + 4] end
        if frees > latest then
          latest = frees
          reply = 'D' .. char(r - 1) .. sub(log, offset, offset + 4)
        end
      end
    end
  end
  return reply
end

-- stamps are values of the field "" by age, for keys whose newest entry is of now.
local stamps, ttl, sweeps = nil, nil, SWEEPS

local out, o, allowed = {}, 0, 0
local w = {'', '', '', '', '', '', '', ''}
p = 1
-- What the loop needs of the latest user's group: most users are settled by
-- comparing with its first two rules, without a call.
local code, group, none, low, span1, from1, span2, from2, more
-- With one group of rules there is nothing to look up.
local alone = last_group == 0 and {0}
-- The log before, and what came of it: neighbours who got the same campaigns
-- have the same log. 0, which no log is: nothing to go by.
local same, same_verdict, same_write = 0, nil, nil
for k = 1, #KEYS do
  local key, count = KEYS[k], byte(users, p)
  local fields = {byte(users, p + 1, p + count)}
  local codes = alone or {byte(users, p + 1 + count, p + 2 * count)}
  for i = 1, count do fields[i] = names and names[fields[i]] or tostring(fields[i]) end
  local logs = try('HMGET', key, '', unpack(fields, 1, count))
  local m, last, wrong = 2, now, logs.err and 'T'
  if wrong and not wrongtype(logs.err) then return redis.error_reply(logs.err) end
  for i = 1, count do
    if not alone and codes[i] ~= code or not code then
      code = codes[i]
      group = parsed[code]
      none, low, more = group[1], group[2], group[3] > 2 or group[4]
      span1, from1, span2, from2 = group[5] or 1e9, group[7], group[10] or 1e9, group[12]
      same = 0
    end
    local log, verdict, write = logs[i + 1], wrong, nil
    if log == same then
      work, verdict, write = work + #log, same_verdict, same_write
    elseif not log or log == '' then
      verdict, write = wrong or none, entry
    else
      same = log
      local size = #log
      work = work + size
      local hit = find(log, token, 1, true)
      while hit and (no_token or hit % 12 ~= 7 or byte(log, hit - 1) ~= channel or instant(log, hit - 6) <= horizon) do
        hit = not no_token and find(log, token, hit + 1, true)
      end
      if size % 12 ~= 0 then
        verdict = 'C'
      elseif hit then
        if instant(log, hit - 6) < since then verdict = 'R' end
      else
        -- the coarse times of the oldest entry, of the one after it (a to f) and of the newest
        local a, b, c, _, _, _, _, _, _, _, _, _, d, e, f = byte(log, 1, 15)
        local oldest = (a * 256 + b) * 256 + c
        a, b, c = byte(log, size - 11, size - 9)
        local newest, doubt = (a * 256 + b) * 256 + c, none
        if newest >= low then
          doubt = doubt or more
          if size > span1 and newest >= from1 then
            a, b, c = byte(log, size - span1, size - span1 + 2)
            doubt = doubt or (a * 256 + b) * 256 + c >= from1
          end
          if size > span2 and newest >= from2 then
            if size - span2 == 1 then
              doubt = doubt or oldest >= from2
            else
              a, b, c = byte(log, size - span2, size - span2 + 2)
              doubt = doubt or (a * 256 + b) * 256 + c >= from2
            end
          end
        end
        if doubt then verdict = denial(log, size, newest, group) end
        if not verdict and record == 1 then
          write = entry
          if newest >= now_coarse then
            local at = instant(log, size - 11)
            if at > now then -- never stamped before the newest
              write = sub(log, size - 11, size - 7) .. sub(entry, 6)
              if at > last then last = at end
              same = 0
            end
          end
          if oldest <= oblivion_coarse then -- forget the oldest
            local first = 1
            if oldest < oblivion_coarse and d and (d * 256 + e) * 256 + f > oblivion_coarse then
              first = 13
            else
              local past, live = 0, size / 12 -- entries known to be past, and the first known not to be
              while past < live do
                local middle = math.floor((past + live) / 2)
                if instant(log, middle * 12 + 1) <= oblivion then past = middle + 1 else live = middle end
              end
              first = past * 12 + 1
            end
            if first > 1 then
              log = sub(log, first)
              size = size - first + 1
            end
          end
          if size >= FULL then -- and the channel's oldest, when there are BOUND of them
            local drop, n = nil, 0
            work = work + SCAN * size
            for offset = 1, size, ENTRY do
              if byte(log, offset + 5) == channel then
                drop = drop or offset
                n = n + 1
              end
            end
            if n >= BOUND then log = sub(log, 1, drop - 1) .. sub(log, drop + ENTRY) end
          end
          write = log .. write
        end
      end
      same_verdict, same_write = verdict, write
    end
    if verdict then
      if allowed > 0 then
        o = o + 1
        out[o] = rep('A', allowed)
        allowed = 0
      end
      o = o + 1
      out[o] = verdict
    else
      allowed = allowed + 1
      if write then
        w[m + 1], w[m + 2] = fields[i], write
        m = m + 2
      end
    end
    if work > WORK then break end
  end
  -- Write what w holds from 3 to m, and see to it that the key outlives the
  -- instant last by keep. As a function of its own this would cost a call of one
  -- user a tenth.
  if m > 2 and record == 1 then
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
      local swept = age >= SWEEP_AGE and sweeps > 0
      if swept then age, sweeps = 0, sweeps - 1 end
      if not stamps then stamps, ttl = {}, string.format('%d', life) end
      local stamp, expire = stamps[age], ttl
      if last > now then
        stamp = pack('>I5B', math.min(last + life, 1099511627774), age)
        expire = string.format('%d', last + life - now)
      elseif not stamp then
        stamp = pack('>I5B', math.min(now + life, 1099511627774), age)
        stamps[age] = stamp
      end
      w[2] = stamp
      call('HSET', key, unpack(w, 1, m))
      local expires = try('PEXPIRE', key, expire)
      if type(expires) == 'table' and expires.err then -- the next write shall try again
        call('HDEL', key, '')
        return redis.error_reply(expires.err)
      end
      if swept then
        -- Drop the logs that hold nothing later than oblivion. Where logs are too
        -- many bytes, those that are seen: each sweep begins at another place.
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
            if name ~= '' and size % ENTRY == 0 and (size == 0 or instant(log, size - 11) <= oblivion) then
              dead[#dead + 1] = name
            end
          end
          if #dead > 0 then call('HDEL', key, unpack(dead)) end
        until turns == 2 or seen > WORK
      end
    end
  end
  p = p + 1 + 2 * count
  if work > WORK then break end
end
out[o + 1] = rep('A', allowed)
return concat(out)
