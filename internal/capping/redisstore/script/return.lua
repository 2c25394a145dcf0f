-- Gives back permits of a remembered request whose slots are ahead, in one atomic step at all its pacers. The rules are
-- those of pacing.Log.Return, which explains the terms; pace.lua explains the stored logs.
--
-- KEYS     the logs, one for each target; the remembered grant; for each target, the time until which the pacer's logs
--          were forgotten
-- ARGV[1]  header, ${RETURN_HEADER} bytes, big endian: now (5), skew (4), see filter.lua; used permits (3), the longest
--          wait that the request may have had, in microseconds (5), targets (1); then for each target flags (1: 1
--          its log has each slot where it was granted, see pacing.Exact; 2 it is one of several logs of its pacer)
--          and what its limits see: permits (3) and a window in microseconds (6); then the request's fingerprint (8)
--
-- Reply    a string, its first byte:
--            R returned: 1 when the request may have more parts (1), instant now (7), permits that stay (3), for each
--              target the number of slots that its log had (3), then the grant before: permits (6), runs
--            N the request is not remembered: instant now (7)
--            U the request is remembered with another fingerprint
--            T key (1): the key is of another type; C key (1): its content is corrupt
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written.
-- Cost     reads and writes each log as a whole; linear in the runs from the first slot on that goes back, and at most
--          ${MOST_MEETS} comparisons of runs for each log.
local byte, char, sub, concat, min = string.byte, string.char, string.sub, table.concat, math.min
local pack, scan, call, try = struct.pack, struct.unpack, redis.call, redis.pcall
local asked = ARGV[1]
if #ARGV ~= 1 or #asked < ${RETURN_HEADER} then return redis.error_reply('BADARG one argument with a header') end
local stamp, skew, used, wait, count = scan('${RETURN_FORMAT}', asked)
if used > ${MOST_PERMITS} or wait > ${LONGEST_WAIT} or count < 1 or count > ${MOST_TARGETS} or
  #asked ~= ${RETURN_HEADER} + 10 * count + 8 or #KEYS ~= 2 * count + 1 then
  return redis.error_reply('BADARG ' .. #KEYS .. ' keys and ' .. #asked .. ' bytes')
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local refusal = clockskew(stamp, skew, time)
if refusal then return refusal end

-- read returns the value of a key, or false; and the reply for a key that cannot be read.
local function read(key)
  local value = try('GET', KEYS[key + 1])
  if value and value.err then
    if wrongtype(value.err) then return false, 'T' .. char(key) end
    return false, redis.error_reply(value.err)
  end
  return value
end

-- add appends a strand to a list: each permits at a slot, but perhaps fewer at the last one.
local function add(list, at, every, each, permits)
  if permits <= 0 then return end
  if permits <= each then every, each = 0, permits end
  local last = permits - 1 - (permits - 1) % each
  list[#list + 1] = {at = at, every = every, each = each, permits = permits, newest = at + last / each * every}
end

-- part appends the strand's slots from i up to, but not including, j to a list.
local function part(list, s, i, j)
  add(list, s.at + i * s.every, s.every, s.each, min(j * s.each, s.permits) - i * s.each)
end

-- slots returns the number of slots, through how many permits have a slot at or before t, size how many permits the
-- slot i has, and index the number of the slot at t.
local function slots(s) return (s.permits - 1 - (s.permits - 1) % s.each) / s.each + 1 end
local function through(s, t)
  if t < s.at then return 0 end
  if s.every == 0 then return s.permits end
  return min(s.permits, ((t - s.at - (t - s.at) % s.every) / s.every + 1) * s.each)
end
local function size(s, i) return min(s.each, s.permits - i * s.each) end
local function index(s, t) return s.every == 0 and 0 or (t - s.at) / s.every end

-- run returns the run i of the text as a strand. Runs end with the next one, and the last one with total.
local function run(text, i, runs, total)
  local at, every, burst, first = scan('${RUN_FORMAT}', text, ${RUN} * i + 1)
  local stop, list = total, {}
  if i + 1 < runs then stop = scan('>I6', text, ${RUN} * (i + 2) - 5) end
  add(list, at, every, every == 0 and stop - first or burst, stop - first)
  return list[1], first
end

-- one_of returns one slot that strands of different distances have in common, as pacing.Strand.oneOf.
local function one_of(s, o)
  local few, many = s, o
  if slots(o) < slots(s) then few, many = o, s end
  for i = 0, min(slots(few), ${MOST_ODD}) - 1 do
    local at = few.at + i * few.every
    if at >= many.at and at <= many.newest and (at - many.at) % many.every == 0 then return 1, at, few.every end
  end
  return 0
end

-- common returns the slots that both strands have: n slots from at on, or 0.
local function common(s, o)
  local wide, fine = s, o
  if s.every < o.every then wide, fine = o, s end
  local every, at = wide.every, wide.at
  if at < fine.at and every > 0 then at = fine.at + (at - fine.at) % every end
  local last = min(wide.newest, fine.newest)
  if at > last or at < fine.at then return 0 end
  if fine.every == 0 then
    if at ~= fine.at then return 0 end
    return 1, at, every
  end
  if every % fine.every ~= 0 then return one_of(s, o) end
  if (at - fine.at) % fine.every ~= 0 then return 0 end
  local n = (last - at - (last - at) % every) / every + 1
  local stop = at + (n - 1) * every
  if n > 1 and (size(s, index(s, stop)) < s.each or size(o, index(o, stop)) < o.each) then n = n - 1 end
  return n, at, every
end

-- without returns the strand without each permits of n slots from at on, as pacing.Strand.without.
local function without(s, at, every, n, each, overlap)
  local i, step, left = index(s, at), 1, {}
  if n > 1 then step = every / s.every end
  local stay = size(s, i) - each
  part(left, s, 0, i)
  if step == 1 or overlap and step <= n then
    add(left, at, every, stay, n * stay)
    for k = 1, step - 1 do add(left, at + k * s.every, every, s.each, (n - 1) * s.each) end
  else
    for k = 0, n - 1 do
      add(left, at + k * every, 0, stay, stay)
      if k + 1 < n then part(left, s, i + k * step + 1, i + (k + 1) * step) end
    end
  end
  part(left, s, i + (n - 1) * step + 1, slots(s))
  return left
end

-- remove_all removes slots from strands, as pacing.removeAll: it returns what is left of both, and the number of
-- removed permits.
local function remove_all(strands, gone, most, overlap)
  local left, unfound, removed, from, meets, queue = {}, {}, 0, 1, 0, {}
  for i, s in ipairs(strands) do left[i] = s end
  for i = #gone, 1, -1 do queue[#queue + 1] = gone[i] end -- the next one is the last
  while #queue > 0 do
    local s = table.remove(queue)
    while not overlap and from <= #left and left[from].newest < s.at do from = from + 1 end
    local i, found = from, false
    while i <= #left and meets < ${MOST_MEETS} do
      local p = left[i]
      if not overlap and p.at > s.newest then break end
      meets = meets + 1
      local n, at, every = common(p, s)
      if n > 0 then
        if n > ${MOST_COMMON} and (s.every < every or p.every < every and not (overlap and every / p.every <= n)) then
          n = ${MOST_COMMON}
        end
        local each = min(size(p, index(p, at)), size(s, index(s, at)))
        local rest = without(p, at, every, n, each, overlap)
        if #left + #rest - 1 <= most then
          table.remove(left, i)
          for k = #rest, 1, -1 do table.insert(left, i, rest[k]) end
          local again = without(s, at, every, n, each, false)
          for k = #again, 1, -1 do queue[#queue + 1] = again[k] end
          removed, found = removed + n * each, true
          break
        end
      end
      i = i + 1
    end
    if not found then unfound[#unfound + 1] = s end
  end
  return left, unfound, removed
end

-- weave replaces equal strands at equal distances by fewer strands, as pacing.weave.
local function weave(strands)
  local woven, i = {}, 1
  while i <= #strands do
    local s, n = strands[i], 1
    local every = i < #strands and strands[i + 1].at - s.at or 0
    while i + n <= #strands and every > 0 and every <= ${MOST_EVERY} do
      local o = strands[i + n]
      if o.every ~= s.every or o.each ~= s.each or o.permits ~= s.permits or o.at ~= s.at + n * every then break end
      n = n + 1
    end
    local k = slots(s)
    if n <= k or s.permits ~= k * s.each or n * s.each > ${MOST_BURST} then
      for j = i, i + math.max(1, n - 1) - 1 do woven[#woven + 1] = strands[j] end
      i = i + math.max(1, n - 1)
    else
      for j = 0, k - 1 do add(woven, s.at + j * s.every, every, s.each, n * s.each) end
      i = i + n
    end
  end
  return woven
end

-- The remembered grant, and its slots that go back.
local fingerprint = sub(asked, -8)
local held, bad = read(count)
if bad then return bad end
if not held then return pack('>c1I7', 'N', now) end
if #held < ${REMEMBERED} or (#held - ${REMEMBERED}) % ${RUN} > 0 then return 'C' .. char(count) end
if sub(held, 1, 8) ~= fingerprint then return 'U' end
local more, total = scan('>BI6', held, 9)
local granted, runs = sub(held, ${REMEMBERED} + 1), (#held - ${REMEMBERED}) / ${RUN}
local kept, newest, back = used, 0, {}
for i = 0, runs - 1 do
  local r, first = run(granted, i, runs, total)
  if not r then return 'C' .. char(count) end
  if r.at > now then break end
  kept = math.max(kept, first + through(r, now))
end
kept = min(kept, total)
for i = 0, runs - 1 do
  local r, first = run(granted, i, runs, total)
  if not r then return 'C' .. char(count) end
  newest = r.newest
  if first + r.permits > kept then
    local k = math.max(0, kept - first)
    local begun = k % r.each
    local slot = (k - begun) / r.each
    if begun > 0 then
      local rest = size(r, slot) - begun
      add(back, r.at + slot * r.every, 0, rest, rest)
      slot = slot + 1
    end
    part(back, r, slot, slots(r))
  end
end

-- moves reports whether a strand may stand ahead.
local function moves(s, exact) return s.permits <= ${MOST_BURST} and (exact or s.each == 1) end

-- give removes the slots that go back from a log, as pacing.Log.Return.
local function give(log, exact, sees, window)
  local text, n, line, before = log.text, log.runs, {}, ''
  local first, from = n, back[1].at
  while first > 0 and run(text, first - 1, n, log.total).newest >= from do first = first - 1 end
  local kept_runs, kept_total, newest = first, log.total, first > 0 and run(text, first - 1, n, log.total).newest or 0
  before = sub(text, 1, ${RUN} * first)
  for i = first, n - 1 do
    local r, number = run(text, i, n, log.total)
    local k = through(r, from - 1)
    if i == first then kept_total = number + k end
    if k > 0 then -- only in the first run
      local every, burst = r.every, r.each
      if k <= burst then every, burst = 0, 1 end
      before, kept_runs = before .. pack('${RUN_FORMAT}', r.at, every, burst, number), kept_runs + 1
      newest = r.at + (k / r.each - 1) * r.every
    end
    part(line, r, k / r.each, slots(r))
  end

  local start = log.start
  if #line > 0 and start > 0 and kept_total - start < sees then
    local oldest = run(text, 0, n, log.total).at
    if oldest + window > newest then -- the limits could see dropped slots again, none of which was later than oldest
      start = start - min(start, sees)
      before, kept_runs = pack('${RUN_FORMAT}', oldest, 0, 1, start) .. before, kept_runs + 1
    end
  end
  local apart = #line <= ${MOST_APART}
  for _, s in ipairs(line) do apart = apart and moves(s, exact) end
  if apart then
    local left, unfound, removed = remove_all(line, back, 2 * ${MOST_APART}, true)
    left = weave(left)
    local ahead, _, further = remove_all(log.ahead, unfound, ${MOST_AHEAD}, true)
    if removed > 0 and #left + #ahead <= ${MOST_RETURNED} then
      for _, s in ipairs(ahead) do left[#left + 1] = s end
      log.text, log.runs, log.total, log.start, log.ahead = before, kept_runs, kept_total, start, left
      return removed + further
    end
  end

  local left, unfound, removed = remove_all(line, back, ${MOST_LINE}, false)
  local ahead, _, further = remove_all(log.ahead, unfound, ${MOST_AHEAD}, true)
  if removed > 0 then
    local stay = #left
    while stay > 0 and #left - stay < ${MOST_RETURNED} - #ahead and moves(left[stay], exact) do stay = stay - 1 end
    if kept_runs + stay > ${MOST_LINE} then return 0 end
    local packed = {before}
    for i = 1, stay do
      local s = left[i]
      packed[i + 1] = pack('${RUN_FORMAT}', s.at, s.every, s.every == 0 and 1 or s.each, kept_total)
      kept_total = kept_total + s.permits
    end
    log.text, log.runs, log.total, log.start = concat(packed), kept_runs + stay, kept_total, start
    local moved = {}
    for i = stay + 1, #left do moved[#moved + 1] = left[i] end
    for _, s in ipairs(ahead) do moved[#moved + 1] = s end
    ahead = moved
  end
  log.ahead = ahead
  return removed + further
end

-- parse returns the log of a stored text, or nil for an invalid one.
local function parse(text)
  local bytes = #text
  if bytes < ${TRAILER} + ${STRAND} then return nil end
  local version, area, strands = byte(text, bytes), 0, 0
  if version == ${AHEAD_FORMAT} then
    area, strands = scan('>I2B', text, bytes - ${TRAILER} - 2)
    area = area + 3
    if bytes < ${TRAILER} + area or area < 3 + ${STRAND} * strands or strands < 1 then return nil end
  elseif version ~= ${LOG_FORMAT} then
    return nil
  end
  local log = {ahead = {}}
  for i = 1, strands do
    local at, every, burst, permits =
      scan('${STRAND_FORMAT}', text, bytes - ${TRAILER} - area + 1 + ${STRAND} * (i - 1))
    if burst < 1 or permits < 1 then return nil end
    add(log.ahead, at, every, every == 0 and permits or burst, permits)
  end
  log.total, log.runs, log.start, log.oldest, log.look, log.untl, log.born, log.rewritten, log.stored =
    scan('${TRAILER_FORMAT}', text, bytes - ${TRAILER} + 1)
  if ${RUN} * log.runs + ${CURSOR} * log.stored + area + ${TRAILER} ~= bytes then return nil end
  log.text = sub(text, 1, ${RUN} * log.runs)
  for i = 0, log.runs - 1 do
    local at, every, burst, first = scan('${RUN_FORMAT}', text, ${RUN} * i + 1)
    local stop = i + 1 < log.runs and scan('>I6', text, ${RUN} * (i + 2) - 5) or log.total
    if burst < 1 or stop <= first then return nil end
  end
  return log
end

-- Read all logs before anything is written.
local logs, removed = {}, {}
for t = 1, count do removed[t] = pack('>I3', 0) end
for t = 1, kept < total and count or 0 do
  local text, faulty = read(t - 1)
  if faulty then return faulty end
  local mark, wrong = read(count + t)
  if wrong then return wrong end
  mark = tonumber(mark or nil)
  if text then
    local log = parse(text)
    if not log then return 'C' .. char(t - 1) end
    -- The logs of a pacer that was forgotten since the request do not have its slots.
    local flags, sees, window = scan('>BI3I6', asked, ${RETURN_HEADER} + 10 * t - 9)
    if not (mark and (flags >= 2 and log.born <= mark or mark >= newest - wait)) then
      local n = give(log, flags % 2 == 1, sees, window)
      removed[t] = pack('>I3', n)
      if n > 0 then
        log.key = KEYS[t]
        logs[#logs + 1] = log
      end
    end
  end
end

if kept < total then
  local left = 0
  while left < runs and scan('>I6', granted, ${RUN} * left + 16) < kept do left = left + 1 end
  call('SET', KEYS[count + 1], sub(held, 1, 9) .. pack('>I6', kept) .. sub(granted, 1, ${RUN} * left), 'KEEPTTL')
end
for _, log in ipairs(logs) do
  if log.runs == 0 and #log.ahead == 0 then
    call('DEL', log.key)
  else
    local data = {log.text}
    for _ = 1, log.stored do
      data[#data + 1] = pack('${CURSOR_FORMAT}', 0, ${NO_COPIES}, string.rep('\0', ${COPIES}))
    end
    for _, s in ipairs(log.ahead) do
      data[#data + 1] = pack('${STRAND_FORMAT}', s.at, s.every, s.every == 0 and 1 or s.each, s.permits)
    end
    local version = ${LOG_FORMAT}
    if #log.ahead > 0 then
      data[#data + 1], version = pack('>I2B', ${STRAND} * #log.ahead, #log.ahead), ${AHEAD_FORMAT}
    end
    data[#data + 1] = pack('${TRAILER_FORMAT}', log.total, log.runs, log.start, log.oldest, log.look, log.untl,
      log.born, (log.rewritten + 1) % 4294967296, log.stored, version)
    call('SET', log.key, concat(data), 'KEEPTTL')
  end
end
return pack('>c1BI7I3', 'R', more, now, kept) .. concat(removed) .. sub(held, ${REMEMBERED} - 5)
