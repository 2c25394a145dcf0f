-- Merges the logs of the users of one partition with sends that were recorded elsewhere.
-- The rule is that of capping.Log.Union.
--
-- KEYS     buckets; a bucket may come several times. With mode ${COUNT}, the counts (see counts.lua) of each message of
--          ARGV[4] follow
-- ARGV[1]  header, ${UNION_HEADER} bytes, big endian: now (5), forget (6), keep (6), life (6), skew (4), mode (1); see filter.lua
-- ARGV[2]  users, key by key: count (1), then for each user a field (${FIELD_NOTE}) and the number of entries (3)
-- ARGV[3]  the entries, user by user, those of each user in time order
-- ARGV[4]  tokens of the messages whose sends are counted, ${TOKEN} bytes each
--
-- Entries that are at least forget old are ignored, and removed where the log is written.
--
-- Reply    a string, user by user in the order of ARGV[2]: M, then the number of added entries (2; the largest number
--          also stands for more), or C the log is corrupt, T the key is of another type (both: nothing was done).
--          The reply ends early when the call has used up its share of time.
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written. Any other error of a command.
-- Cost     an HMGET per key, an HSET per key with logs that change, an HLEN where a key has no TTL yet, a PEXPIRE when
--          the TTL must grow, an HINCRBY for each message and channel; linear in the bytes of the logs.
local byte, char, sub, find, concat = string.byte, string.char, string.sub, string.find, table.concat
local pack, scan, unpack, call, try = struct.pack, struct.unpack, unpack, redis.call, redis.pcall

local header, users, logs, tokens = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if #ARGV ~= 4 or #header ~= ${UNION_HEADER} or #tokens % ${TOKEN} ~= 0 then return redis.error_reply('BADARG header or arguments') end
local now, forget, keep, life, skew, mode = scan('${UNION_FORMAT}', header)
if not (now < ${NEVER}) or not (keep >= 1 and keep < life and life <= ${LONGEST_LIFE}) or not (forget <= keep) or not (mode >= 1 and mode <= ${COUNT}) then
  return redis.error_reply('BADARG header out of range')
end
local at, size, buckets = 1, 0, #KEYS
if mode == ${COUNT} then buckets = buckets - #tokens / ${TOKEN} end
if buckets < 1 then return redis.error_reply('BADARG no buckets') end
for k = 1, buckets do
  local count = byte(users, at)
  if not count or count < 1 or count > ${KEY_USERS} or at + ${MERGED_USER} * count > #users then return redis.error_reply('BADARG users of key ' .. k) end
  for i = 1, count do size = size + ${ENTRY} * scan('>I3', users, at + ${MERGED_USER} * i - 2) end
  at = at + 1 + ${MERGED_USER} * count
end
if at ~= #users + 1 or size ~= #logs then return redis.error_reply('BADARG users or logs of ' .. #users .. ' and ' .. #logs .. ' bytes') end

local refusal = clockskew(now, skew)
if refusal then return refusal end

local oblivion = now - forget
local no_token = string.rep('\0', ${TOKEN})

local function instant(log, offset)
  local a, b, c, d, e = byte(log, offset, offset + 4)
  return (((a * 256 + b) * 256 + c) * 256 + d) * 256 + e
end

-- later returns the entries of the log that are later than the oblivion.
local function later(log)
  local from = 1
  while from < #log and instant(log, from) <= oblivion do from = from + ${ENTRY} end
  return sub(log, from)
end

-- has reports whether the log has the send of the entry.
local function has(log, entry)
  local from, what, place = ${TOKEN_AT}, sub(entry, ${TOKEN_AT} + 1), ${TOKEN_AT} + 1
  if what == no_token then from, what, place = 0, entry, 1 end
  local hit = find(log, what, 1, true)
  while hit do
    if hit % ${ENTRY} == place and byte(log, hit - from + ${CHANNEL_AT}) == byte(entry, ${CHANNEL_AT} + 1) then return true end
    hit = find(log, what, hit + 1, true)
  end
  return false
end

-- send returns the bytes of the entry at the offset that identify its send.
local function send(log, offset)
  local what = sub(log, offset + ${CHANNEL_AT}, offset + ${ENTRY} - 1)
  if sub(what, 2) == no_token then return sub(log, offset, offset + ${ENTRY} - 1) end
  return what
end

-- lacking returns the entries of other that the log does not have, without duplicates. A few entries are searched in
-- the log, which needs no memory; more entries are searched in a set.
local function lacking(log, other)
  local fresh, seen, few = {}, {}, #other <= 8 * ${ENTRY}
  if not few then
    for offset = 1, #log, ${ENTRY} do seen[send(log, offset)] = true end
  end
  for offset = 1, #other, ${ENTRY} do
    local entry, what = sub(other, offset, offset + ${ENTRY} - 1), send(other, offset)
    if not seen[what] and not (few and has(log, entry)) then fresh[#fresh + 1] = entry end
    seen[what] = true
  end
  return concat(fresh)
end

-- excess returns, by channel, how many entries of both logs together exceed the maximum of a log.
local function excess(log, fresh)
  local over = {}
  if #log + #fresh <= ${ENTRY} * ${LOG_BOUND} then return over end
  for _, one in ipairs({log, fresh}) do
    for offset = 1, #one, ${ENTRY} do
      local channel = byte(one, offset + ${CHANNEL_AT})
      over[channel] = (over[channel] or -${LOG_BOUND}) + 1
    end
  end
  return over
end

-- merge returns the log with the fresh entries in time order, and the fresh entries that stayed.
local function merge(log, fresh)
  local over, all, stayed, i, j = excess(log, fresh), {}, {}, 1, 1
  while i < #log or j < #fresh do
    local entry
    local new = i > #log or j < #fresh and instant(fresh, j) <= instant(log, i)
    if new then
      entry, j = sub(fresh, j, j + ${ENTRY} - 1), j + ${ENTRY}
    else
      entry, i = sub(log, i, i + ${ENTRY} - 1), i + ${ENTRY}
    end
    local left = over[byte(entry, ${CHANNEL_AT} + 1)]
    if left and left > 0 then
      over[byte(entry, ${CHANNEL_AT} + 1)] = left - 1
    else
      all[#all + 1] = entry
      if new then stayed[#stayed + 1] = entry end
    end
  end
  return concat(all), concat(stayed)
end

local work = 0 -- bytes of logs so far

-- union returns the log with the entries of other, and the entries that are new in it.
local function union(log, other)
  if log == '' and #other == ${ENTRY} then return other, other end
  work = work + ${SCAN} * #other
  local fresh = lacking(log, other)
  if fresh == '' then return log, '' end
  if #log + #fresh <= ${ENTRY} * ${LOG_BOUND} then
    if log == '' or instant(fresh, #fresh - (${ENTRY} - 1)) <= instant(log, 1) then return fresh .. log, fresh end
    if instant(fresh, 1) > instant(log, #log - (${ENTRY} - 1)) then return log .. fresh, fresh end
  end
  work = work + ${SCAN} * (#log + #fresh)
  return merge(log, fresh)
end

local counted, new = {}, {} -- counted: index in ARGV[4] by token; new: added entries by index and channel
for i = 0, #tokens / ${TOKEN} - 1 do counted[sub(tokens, ${TOKEN} * i + 1, ${TOKEN} * (i + 1))] = i end

local function count(added)
  for offset = 1, #added, ${ENTRY} do
    local place = counted[sub(added, offset + ${TOKEN_AT}, offset + ${ENTRY} - 1)]
    if place then
      local which = 256 * place + byte(added, offset + ${CHANNEL_AT})
      new[which] = (new[which] or 0) + 1
    end
  end
end

-- write stores the items 3 to m of w, and makes the key outlive the instant last by keep. It returns an error text or
-- nil.
local function write(key, w, m, last, meta)
  local age, untl = 0, -1
  if meta and #meta == 6 then
    untl, age = instant(meta, 1), byte(meta, 6)
  elseif call('HLEN', key) > 0 then -- existing logs must not expire earlier
    last = math.max(last, now)
  end
  if untl >= last + keep then
    call('HSET', key, unpack(w, 3, m))
    return nil
  end
  if untl >= 0 then age = math.min(age + math.floor((last + life - untl) / (life - keep)), 255) end
  w[1], w[2] = '', pack('>I${INSTANT}B', math.min(last + life, ${NEVER} - 1), age)
  call('HSET', key, unpack(w, 1, m))
  local expires = try('PEXPIRE', key, string.format('%d', last + life - now))
  if type(expires) == 'table' and expires.err then -- the next write tries again
    call('HDEL', key, '')
    return expires.err
  end
end

local out, o, p, from, failed = {}, 0, 1, 1, nil
for k = 1, buckets do
  local key, of, fields = KEYS[k], byte(users, p), {}
  for i = 1, of do fields[i] = ${MERGED_FIELD} end
  local found = try('HMGET', key, '', unpack(fields))
  local w, m, last, wrong = {}, 2, 0, found.err and 'T'
  if wrong and not wrongtype(found.err) then
    failed = found.err
    break
  end
  for i = 1, of do
    local bytes = ${ENTRY} * scan('>I3', users, p + ${MERGED_USER} * i - 2)
    local other, log, reply = sub(logs, from, from + bytes - 1), found[i + 1] or '', wrong
    from, work = from + bytes, work + #log + bytes
    if not wrong and #log % ${ENTRY} ~= 0 then reply = 'C' end
    if not reply then
      local all, added = union(later(log), later(other))
      if added ~= '' then
        w[m + 1], w[m + 2] = fields[i], all
        m, last = m + 2, math.max(last, instant(all, #all - (${ENTRY} - 1)))
        if #tokens > 0 then count(added) end
      end
      reply = 'M' .. pack('>I2', math.min(#added / ${ENTRY}, 65535))
    end
    o = o + 1
    out[o] = reply
    if work > ${WORK} then break end
  end
  if m > 2 then failed = write(key, w, m, last, found[1]) end
  p = p + 1 + ${MERGED_USER} * of
  if failed or work > ${WORK} then break end
end
local all = new
for which, new in pairs(all) do
  local place, field = math.floor(which / 256), which % 256
  local counts = KEYS[buckets + 1 + place]
  ${COUNT_SENDS}
end
if failed then return redis.error_reply(failed) end
return concat(out)
