-- Takes permits of pacers in one atomic step: places the permits into the pacers' logs where their limits allow it.
-- The rules are those of pacing.Place.
--
-- KEYS     the logs, one for each target; then, for each target per message, the time until which the pacer's logs were
--          forgotten; then the remembered grant of each request
-- ARGV[1]  header, ${PACE_HEADER} bytes, big endian: now (5), skew (4), see filter.lua; permits (3), wait (5),
--          how long requests are remembered in milliseconds (5), has a request (1; 2: it is remembered even when nothing
--          is granted; 3: several requests share the permits; 4: as 2, and nothing is taken), targets (1); then target by
--          target: is per message (1), keep (6), limits (1), for each of them max (3), window (6); then, with a request,
--          its fingerprint (8); with several, the permits (3) and the fingerprint (8) of each
--
-- now is the caller's time in milliseconds since 2024-01-01 UTC, and skew is in milliseconds. All other instants are
-- microseconds since 1970 by the node's clock, and all other durations are microseconds.
-- keep: the minimum time for which a log outlives its newest slot.
--
-- A log is a string: runs of ${RUN} bytes (pacing.AppendRun), then cursors (one per limit, or none), then slots ahead
-- in format ${AHEAD_FORMAT}, then a trailer.
-- One read therefore returns the trailer with the latest run, and one write appends.
--   cursor   a run (2), the first of the copied runs (2; ${NO_COPIES}: none), and the copies. The run is the last one
--            that begins before the limit's window, or not after its Max-th newest permit; a wrong cursor costs a
--            search.
--   ahead    strands of ${STRAND} bytes (pacing.Ahead.Append) and padding, their bytes (2), strands (1)
--   trailer  permits ever (6), runs (2); number of the first permit that is kept (6), its slot (7), number of runs at
--            which to look for runs that no limit can see (2), instants until which the TTL is set (7) and of the log's
--            creation (7), number of rewrites (4), cursors (1), format (1)
-- A log from before its pacer was forgotten counts as empty.
-- A remembered request has the form of pacing.Remembered. Several requests divide the grant in their order.
--
-- Reply    a string, its first byte:
--            G granted: flags (1: 1 replayed, 2 more is available), instants now (7) and of the next slot (7), target
--              and limit that the next slot waits for (1 each; 255: none), for each target its newest slot (7), its
--              next slot (7) and for each limit its used permits (3), then runs
--            S one target, and all permits at one slot or none: instants now (7), of the newest slot (7) and of the
--              next one (7), limit that it waits for (1; 254: the newest slot, 255: none), granted (3), then for each
--              limit its used permits before the call (3)
--            F target (1), instant now (7): its log is full, nothing was taken
--            U the request is remembered with another fingerprint
--            R numbers of requests (1 each): of several requests, these are remembered or have keys that are not strings:
--              nothing was taken
--            T key (1): the key is of another type; C key (1): its content is corrupt
-- Errors   BADARG …, CLOCKSKEW <milliseconds>: nothing was written. Any other error of a command, such as a missing right.
-- Cost     a GETRANGE and a SETRANGE per log, some more where limits look far back; linear in the irregular slots,
--          which are at most as many as ${PACE_WORK} looks at limits allow.
local byte, char, sub, concat = string.byte, string.char, string.sub, table.concat
local pack, scan, call, try = struct.pack, struct.unpack, redis.call, redis.pcall
local asked = ARGV[1]
if #ARGV ~= 1 or #asked < ${PACE_HEADER} then return redis.error_reply('BADARG one argument with a header') end
local stamp, skew, permits, wait, life, requested, count = scan('${PACE_FORMAT}', asked)
if permits > ${MOST_PERMITS} or wait > ${LONGEST_WAIT} or count < 1 or count > ${MOST_TARGETS} or requested > 4 or requested > 0 and life < 1 then
  return redis.error_reply('BADARG header out of range')
end
local ends, several = requested == 4, requested == 3
local even_nothing = permits > 0 and (ends or requested == 2) -- it is remembered
if requested > 1 then requested = 1 end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local refusal = clockskew(stamp, skew, time)
if refusal then return refusal end

-- fetch returns the run i of the log: slot, every, burst, first permit. The read chunk stays with s for the next
--            search.
local function fetch(log, i, s)
  if i == log.last then return log.at, log.every, log.burst, log.first end
  if i >= log.base then
    local done, k = log.done, 4 * (i - log.base)
    return done[k + 1], done[k + 2], done[k + 3], done[k + 4]
  end
  local text, from, at = log.tail, log.from, log.tail_at
  if i < from then
    text, from = s.chunk, s.chunk_from
    if not text or i < from or i >= from + ${CHUNK} then
      from = i > 0 and i - 1 or 0
      text = redis.call('GETRANGE', log.key, ${RUN} * from, ${RUN} * (from + ${CHUNK}) - 1)
      s.chunk, s.chunk_from = text, from
    end
    at = 1
  end
  return struct.unpack('${RUN_FORMAT}', text, at + ${RUN} * (i - from))
end

-- move makes the permit the source of s. A source must be a window old before the limit allows another permit.
local function move(s, permit, fetch)
  s.permit = permit
  local log = s.log
  if permit < log.start then return end -- no longer kept: nothing waits for it
  if permit >= s.stop then
    if permit >= log.first then -- the last run may change, so it is read each time
      s.run, s.at, s.every, s.burst, s.first = log.last, log.at, log.every, log.burst, log.first
    else
      -- Invariant: first(low) <= permit < first(above).
      local low, above, step, guess = 0, log.last, 1, s.run
      local stop = log.first
      if guess >= above then guess = above - 1 end
      local at, every, burst, first = fetch(log, guess, s)
      if first <= permit then
        low = guess
        while low + step < above do
          local a, e, b, f = fetch(log, low + step, s)
          if f > permit then above, stop = low + step, f break end
          low, at, every, burst, first = low + step, a, e, b, f
          step = 4 * step
        end
      else
        above, stop = guess, first
        at, every, burst, first = fetch(log, 0, s)
      end
      while above - low > 1 do
        local middle = low + (above - low - (above - low) % 2) / 2
        local a, e, b, f = fetch(log, middle, s)
        if f <= permit then
          low, at, every, burst, first = middle, a, e, b, f
        else
          above, stop = middle, f
        end
      end
      s.run, s.at, s.every, s.burst, s.first, s.stop = low, at, every, burst, first, stop
    end
  end
  local at, every = s.at, s.every
  if every > 0 then
    local k, burst = permit - s.first, s.burst
    at = at + (k - k % burst) / burst * every
  end
  s.opens = at + s.window
end

-- append adds permits to a log: burst permits at the slot at, burst permits at at + every, and so on.
local function append(log, at, every, burst, permits)
  local total, last = log.total, log.last
  log.total = total + permits
  log.newest = at
  if every > 0 then log.newest = at + (permits - 1 - (permits - 1) % burst) / burst * every end
  if last >= 0 then
    local size, e, b, single = total - log.first, log.every, log.burst, permits <= burst
    if e == 0 then
      local gap = at - log.at
      if gap == 0 then
        if single then return end
      elseif gap <= ${MOST_EVERY} and size <= ${MOST_BURST} and (single and permits <= size or not single and every == gap and burst == size) then
        log.every, log.burst = gap, size
        return
      end
    else
      local placed = (size - 1) % b
      local latest = log.at + (size - 1 - placed) / b * e
      if single and at == latest then
        if permits <= b - 1 - placed then return end
      elseif placed == b - 1 and at == latest + e and (single and permits <= b or every == e and burst == b) then
        return
      end
    end
    local done = log.done
    if not done then
      done = {}
      log.done = done
    end
    local d = #done
    done[d + 1], done[d + 2], done[d + 3], done[d + 4] = log.at, e, b, log.first
  end
  if every == 0 or permits <= burst then every, burst = 0, 1 end
  log.last, log.at, log.every, log.burst, log.first = last + 1, at, every, burst, total
end

-- through returns how many permits of the source's run have a slot at or before t.
local function through(t, at, every, burst, size)
  if t < at then return 0 end
  if every == 0 then return size end
  local n = ((t - at - (t - at) % every) / every + 1) * burst
  if n > size then return size end
  return n
end

-- room returns how many permits the limit allows at t, by the source's run alone. The limit must be open at t.
local function room(s, t, through)
  local log, permit = s.log, s.permit
  if permit < log.start then return log.start - permit end
  local stop = s.run == log.last and log.total or s.stop
  return s.first + through(t - s.window, s.at, s.every, s.burst, stop - s.first) - permit
end

-- repeated returns the room for permits that come in bursts from t on, one burst per interval. The result may be too
-- low.
local function repeated(s, t, every, burst, room, through)
  local log, permit = s.log, s.permit
  if permit >= log.start then
    local left = (s.run == log.last and log.total or s.stop) - permit
    if left >= burst and (s.every == 0 or burst % s.burst == 0 and burst / s.burst * s.every <= every) then
      local at, k = s.at, permit + burst - 1 - s.first
      if s.every > 0 then at = at + (k - k % s.burst) / s.burst * s.every end
      if at + s.window <= t then return left end
    end
  end
  return room(s, t, through)
end

-- unseen returns the number of runs, from the log's first run on, that no limit can see now.
local function unseen(log, now, greatest, keep, fetch)
  local low, above = 0, log.last -- no limit sees the runs before low; some limit sees the run above
  while low < above do
    local middle = low + (above - low - (above - low) % 2) / 2
    local at, every, burst, first = fetch(log, middle, log)
    local _, _, _, stop = fetch(log, middle + 1, log)
    local k = stop - 1 - first
    if every > 0 then at = at + (k - k % burst) / burst * every end
    if stop > log.total - greatest and at + keep > now then above = middle else low = middle + 1 end
  end
  return low
end

-- used returns how many of the limit's newest permits are later than t, and the run with which its window begins.
local function used(s, t, guess, fetch, through)
  local log = s.log
  if log.newest <= t then return 0, log.last end
  local total, kept = log.total, s.permit >= log.start
  if kept and s.opens - s.window > t then return s.max, s.run end
  local low, above, step, near = kept and s.run or 0, log.last, 0, true -- the run is one of these
  if log.oldest > t then above = low end
  while low < above do
    if guess < low or guess >= above then guess = low + (above - low - (above - low) % 2) / 2 end
    local at, every, burst, first = fetch(log, guess, s)
    local _, _, _, stop = fetch(log, guess + 1, s)
    local latest, k = at, stop - 1 - first
    if every > 0 then latest = at + (k - k % burst) / burst * every end
    if latest <= t then
      low = guess + 1
      guess, step = low + step, 2 * step + 1
    else
      above = guess
      if at <= t then low = guess end
      if near then guess, near = guess - 1, false else guess = -1 end
    end
  end
  local at, every, burst, first = fetch(log, low, s)
  local stop = total
  if low < log.last then
    local _
    _, _, _, stop = fetch(log, low + 1, s)
  end
  local n = total - first - through(t, at, every, burst, stop - first)
  if n > s.max then n = s.max end
  return n, low
end

-- ahead_through returns how many of the log's slots ahead are at or before t.
local function ahead_through(log, t)
  local n = 0
  for _, s in ipairs(log.ahead) do n = n + through(t, s.at, s.every, s.burst, s.permits) end
  return n
end

-- slot_of returns the slot of a strand's permit; permits count from 0.
local function slot_of(s, permit)
  if s.every == 0 then return s.at end
  return s.at + (permit - permit % s.burst) / s.burst * s.every
end

-- ahead_after returns the log's first slot ahead after t, or a time later than all slots.
local function ahead_after(log, t)
  local first = ${NO_SLOT}
  for _, s in ipairs(log.ahead) do
    local n = through(t, s.at, s.every, s.burst, s.permits)
    if n < s.permits then first = math.min(first, slot_of(s, n)) end
  end
  return first
end

-- latest returns the log's latest slot, also one ahead.
local function latest(log)
  local at = log.newest
  for _, s in ipairs(log.ahead) do at = math.max(at, slot_of(s, s.permits - 1)) end
  return at
end

-- absorb moves the slots ahead up to t to the runs, while the log has fewer than most runs.
local function absorb(log, t, most)
  local ahead = log.ahead
  while #ahead > 0 and log.last - log.cut < most do
    local first, stop = nil, t -- stop: the first slot of the other strands
    for i, s in ipairs(ahead) do
      if not first or s.at < ahead[first].at then
        if first then stop = math.min(stop, ahead[first].at) end
        first = i
      else
        stop = math.min(stop, s.at)
      end
    end
    local s = ahead[first]
    if s.at > t then return end
    local n = through(stop, s.at, s.every, s.burst, s.permits)
    if s.every == 0 or n <= s.burst then append(log, s.at, 0, n, n) else append(log, s.at, s.every, s.burst, n) end
    if n == s.permits then
      table.remove(ahead, first)
    else
      s.at, s.permits = slot_of(s, n), s.permits - n
      if s.permits <= s.burst then s.every, s.burst = 0, 1 end
    end
    if log.last - log.cut >= ${FULL} then log.dirty = true end
  end
end

-- stand adds a permit ahead, as pacing.Log.Stand.
local function stand(log, at)
  local ahead = log.ahead
  while true do
    for _, s in ipairs(ahead) do
      local newest, space = slot_of(s, s.permits - 1), false
      if s.every == 0 then
        space = at >= s.at and at - s.at <= ${MOST_EVERY}
      elseif at == newest then
        space = s.permits % s.burst > 0
      else
        space = at == newest + s.every and s.permits % s.burst == 0
      end
      if space and s.permits < ${MOST_BURST} then
        if s.every == 0 and at > s.at then s.every, s.burst = at - s.at, s.permits end
        s.permits = s.permits + 1
        return
      end
    end
    if #ahead < ${MOST_AHEAD} then
      ahead[#ahead + 1] = {at = at, every = 0, burst = 1, permits = 1}
      return
    end
    local first = ${NO_SLOT}
    for _, s in ipairs(ahead) do first = math.min(first, slot_of(s, s.permits - 1)) end
    absorb(log, math.min(first, at), ${NO_COPIES})
    if first > at then return append(log, at, 0, 1, 1) end
  end
end

-- rewind makes the permit the source of s, which may be before the one of now.
local function rewind(s, permit)
  s.opens = 0
  if permit < s.first then s.stop = 0 end
  move(s, permit, fetch)
end

-- room_after returns how many permits fit into the limit's window that ends with t, when so many slots ahead are not
-- later, or 0 and the first slot at which the window loses permits.
local function room_after(s, t, ahead)
  local log = s.log
  if ahead >= s.max then
    local n = s.max - ahead + ahead_through(log, t - s.window)
    if n > 0 then return n, t end
    local opens = ahead_after(log, t - s.window) + s.window
    for _, strand in ipairs(log.ahead) do -- a strand may fill every window from here on
      local every = strand.every
      if every > 0 and strand.at <= t - s.window and strand.permits >= s.max and (s.window - s.window % every) / every * strand.burst >= s.max then
        opens = math.max(opens, slot_of(strand, strand.permits - s.max) + s.window)
      end
    end
    return 0, opens
  end
  rewind(s, log.total - s.max + ahead)
  if s.opens > t then return 0, s.opens end
  return room(s, t, through), t
end

-- room_at returns how many permits the limit allows at t at least, or 0 and a later slot. Its work is that of
-- pacing.source.looked.
local function room_at(s, t)
  local log = s.log
  local strands = #log.ahead
  s.looked = strands
  if strands == 0 then return room_after(s, t, 0) end
  local permits, opens = room_after(s, t, ahead_through(log, t))
  local first = ahead_after(log, t)
  if permits == 0 or first >= t + s.window then return permits, opens end
  local all, later = room_after(s, t, ahead_through(log, t + s.window - 1))
  if all > 0 then return math.min(permits, all), t end
  local full, looks = t, 0
  while first < t + s.window do -- the windows that end with later slots
    looks = looks + 1
    s.looked = s.looked + strands
    if looks > ${MOST_WINDOWS} then return 0, math.max(opens, later) end
    local n = room_after(s, first, ahead_through(log, first))
    if n == 0 then full = first end
    if n < permits then permits = n end
    first = ahead_after(log, first)
  end
  return permits, full
end

-- Decode the argument.
local logs, sources, at, key = {}, {}, ${PACE_HEADER} + 1, count
for t = 1, count do
  local per_message, keep, limits
  if #asked >= at + 7 then per_message, keep, limits, at = scan('>BI6B', asked, at) end
  if not limits or per_message > 1 or limits < 1 or limits > ${LIMITS} or #asked < at + 9 * limits - 1 then
    return redis.error_reply('BADARG targets of ' .. #asked .. ' bytes')
  end
  key = key + per_message
  local log = { -- all names at once: a table that grows step by step costs three times as much
    key = KEYS[t], keep = keep, forgotten = per_message == 1 and KEYS[key], limits = limits, stored = 0, fresh = false, cut = 0,
    total = 0, start = 0, oldest = 0, look = 0, untl = 0, born = 0, rewritten = 0, last = -1, base = 0, tail = false, tail_at = 0, ahead = {}, bytes = 0, dirty = false, bare = true,
    from = 0, at = 0, every = 0, burst = 0, first = 0, newest = 0, done = false, cursors = false,
  }
  logs[t] = log
  for l = 1, limits do
    local max, window
    max, window, at = scan('>I3I6', asked, at)
    if max < 1 or window < 1 then return redis.error_reply('BADARG limit of target ' .. t) end
    sources[#sources + 1] = {
      log = log, target = t - 1, limit = l - 1, max = max, window = window, run = 0, stop = 0, opens = 0, permit = 0, begins = 0, looked = 0,
      at = 0, every = 0, burst = 0, first = 0,
    }
  end
end
local requests = #KEYS - key -- their keys are the last ones
if several and (requests < 1 or requests > 256 or #asked ~= at - 1 + ${REQUEST} * requests) or not several and (#asked ~= at - 1 + 8 * requested or requests ~= requested) then
  return redis.error_reply('BADARG ' .. #KEYS .. ' keys')
end
local fingerprint = sub(asked, at)

local remembered, flags = nil, 0
if several then
  local repeated = 'R'
  for r = 1, requests do
    if try('GET', KEYS[key + r]) then repeated = repeated .. char(r - 1) end
  end
  if #repeated > 1 then return repeated end
elseif requested == 1 and permits > 0 then
  remembered = try('GET', KEYS[#KEYS])
  if remembered then
    if remembered.err then
      if wrongtype(remembered.err) then return 'T' .. char(#KEYS - 1) end
      return redis.error_reply(remembered.err)
    end
    if #remembered < ${REMEMBERED} then return 'C' .. char(#KEYS - 1) end
    if sub(remembered, 1, 8) ~= fingerprint then return 'U' end
    permits, flags, even_nothing = 0, 1 + 2 * byte(remembered, 9), false
  end
end
if ends then permits = 0 end

-- Read the logs.
local s, gaps, searches = 0, false, 0 -- gaps: a log has slots ahead; searches: steps of searches for room
for t = 1, count do
  local log = logs[t]
  local tail, mark = try('GETRANGE', log.key, '-${TAIL}', '-1'), false
  if tail.err then
    if wrongtype(tail.err) then return 'T' .. char(t - 1) end
    return redis.error_reply(tail.err)
  end
  if log.forgotten then
    mark = try('GET', log.forgotten)
    if mark and mark.err then
      if wrongtype(mark.err) then return 'T' .. char(key) end
      return redis.error_reply(mark.err)
    end
    mark = tonumber(mark or nil)
  end
  local total, start, oldest, runs, look, untl, born, rewritten, stored, size = 0, 0, now, 0, ${LOOK}, 0, now, 0, 0, #tail
  local fresh, ends = size == 0, 0
  if not fresh then
    local version, area, strands = byte(tail, size), 0, 0
    if size < ${TRAILER} + ${STRAND} or version ~= ${LOG_FORMAT} and version ~= ${AHEAD_FORMAT} then return 'C' .. char(t - 1) end
    if version == ${AHEAD_FORMAT} then
      area, strands = scan('>I2B', tail, size - ${TRAILER} - 2)
      area = area + 3
      if size == ${TAIL} then
        tail = call('GETRANGE', log.key, string.format('%d', -${TAIL} - area), '-1')
        size = #tail
      end
      if size < ${TRAILER} + area or area < 3 + ${STRAND} * strands or strands < 1 then return 'C' .. char(t - 1) end
      for i = 1, strands do
        local at, every, burst, permits = scan('${STRAND_FORMAT}', tail, size - ${TRAILER} - area + 1 + ${STRAND} * (i - 1))
        if burst < 1 or permits < 1 then return 'C' .. char(t - 1) end
        log.ahead[i] = {at = at, every = every, burst = burst, permits = permits}
      end
    end
    total, runs, start, oldest, look, untl, born, rewritten, stored = scan('${TRAILER_FORMAT}', tail, size - ${TRAILER} + 1)
    ends = size - ${TRAILER} - area - ${CURSOR} * stored -- end of the runs
    if (ends < ${RUN} or runs < 1) and (ends ~= 0 or runs > 0 or strands == 0) then return 'C' .. char(t - 1) end
    log.bytes = ${RUN} * runs + ${CURSOR} * stored + area + ${TRAILER}
    if mark and born <= mark then
      log.ahead = {}
      fresh, total, start, oldest, runs, look, untl, born, rewritten, stored = true, 0, 0, now, 0, ${LOOK}, 0, now, 0, 0
    end
  end
  if mark and born <= mark then born = mark + 1 end -- the clock was set back
  log.total, log.start, log.oldest, log.look, log.untl, log.born, log.rewritten = total, start, oldest, look, untl, born, rewritten
  log.fresh, log.cut, log.last, log.base, log.newest, log.first = fresh, 0, runs - 1, 0, 0, 0
  log.stored, log.bare = stored, runs == 0
  if runs > 0 then
    local here = (ends - ends % ${RUN}) / ${RUN}
    if here > runs or here < runs and size < ${TAIL} then return 'C' .. char(t - 1) end
    log.tail, log.from, log.base = tail, runs - here, runs - 1
    log.tail_at = ends - ${RUN} * here + 1
    local slot, every, burst, first = scan('${RUN_FORMAT}', tail, ends - ${RUN} + 1)
    if burst < 1 or total <= first then return 'C' .. char(t - 1) end
    log.at, log.every, log.burst, log.first, log.newest = slot, every, burst, first, slot
    local k = total - 1 - first
    if every > 0 then log.newest = slot + (k - k % burst) / burst * every end
    if permits > 0 and runs >= look then
      local greatest = 0
      for i = s + 1, s + log.limits do
        if sources[i].max > greatest then greatest = sources[i].max end
      end
      local cut = unseen(log, now, greatest, log.keep, fetch)
      if cut > runs - ${HISTORY} then cut = runs - ${HISTORY} end
      if cut >= runs / 4 or runs >= ${FULL} and cut >= ${HISTORY} / 8 then log.cut = cut end
      log.look = math.min(math.max(2 * (runs - cut), ${LOOK}), ${FULL})
    end
    if runs - log.cut >= ${FULL} and permits > 0 then return 'F' .. char(t - 1) .. pack('>I7', now) end
  end
  absorb(log, now, ${FULL})
  gaps = gaps or #log.ahead > 0
  for l = 1, log.limits do
    local source = sources[s + l]
    if log.last >= 0 then
      if l <= stored then source.run = scan('>I2', tail, ends + 1 + ${CURSOR} * (l - 1)) end
      source.begins = source.run
      move(source, log.total - source.max, fetch)
    else
      source.permit = log.total - source.max
    end
  end
  s = s + log.limits
end

-- earliest returns the first slot at or after from that the limits allow, and the target and limit that prevent an
-- earlier one. With only, it looks at one target.
local function earliest(from, only)
  local at, target, limit = from, 255, 255
  for t = 1, count do
    if (not only or only == t) and logs[t].newest > at then at, target = logs[t].newest, t - 1 end
  end
  local looks, moved, work = 0, true, 0
  while moved do
    moved = false
    for i = 1, #sources do
      local source = sources[i]
      if not only or only == source.target + 1 then
        local _, opens = room_at(source, at)
        work = work + source.looked
        if opens > at then at, target, limit, moved = opens, source.target, source.limit, gaps end
      end
    end
    if moved and (looks == ${MOST_LOOKS} or work > ${MOST_WORK}) then
      for t = 1, count do at = math.max(at, latest(logs[t])) end
    end
    looks = looks + 1
  end
  searches = searches + looks + work / 200
  return at, target, limit
end

-- leaves_room returns by target the slot that its own limits allow, when the target can give it and the slot at; nil:
-- for no target. See pacing.placement.
local function leaves_room(at)
  local rooms = nil
  for t = 1, count do
    local own = earliest(now, t)
    local leaves = own < at
    for i = 1, #sources do
      local source = sources[i]
      if source.target + 1 == t and source.max == 1 and at - own < source.window then leaves = false end
    end
    if leaves then
      rooms = rooms or {}
      rooms[t] = own
    end
  end
  return rooms
end

-- affords reports whether the pacers that the permit waits for can wait until the slot up.
local function affords(rooms, at, up)
  for i = 1, #sources do
    local source = sources[i]
    if not rooms[source.target + 1] and source.window < ${ALIGN_SHARE} * (up - at) then
      local log = source.log
      local back = log.total + ahead_through(log, at) - (${ALIGN_SHARE} - 1)
      if source.max > 1 or back >= log.total then return false end
      if back >= log.start then
        rewind(source, back)
        if up - source.opens + source.window > ${ALIGN_SHARE} * source.window then return false end
      end
    end
  end
  return true
end

-- align returns the slot at, moved up to a multiple of a rate's interval from the slot before it.
local function align(rooms, at)
  for i = 1, #sources do
    local source = sources[i]
    if source.max == 1 and rooms[source.target + 1] then
      local log, before = source.log, 0
      for _, strand in ipairs(log.ahead) do
        local n = through(at, strand.at, strand.every, strand.burst, strand.permits)
        if n > 0 then before = math.max(before, slot_of(strand, n - 1)) end
      end
      if before == 0 and log.last >= 0 then before = log.newest end
      local past = (at - before) % source.window
      if before > 0 and past > 0 then
        local up = at + source.window - past
        if earliest(up) == up and affords(rooms, at, up) then return up end
      end
    end
  end
  return at
end

-- repeat_ahead extends the grant's last run, as pacing.placement.repeatAhead.
local function repeat_ahead(grant, rooms, at, left, span)
  local every = grant.every
  if every == 0 or grant.burst ~= 1 then return end
  local slots, tight, rated, size = math.min(left, math.floor(span / every)), false, {}, grant.total - grant.first
  for t = 1, count do
    local ahead = logs[t].ahead
    local strand = ahead[1]
    if rooms[t] then
      if #ahead ~= 1 or strand.every ~= every or strand.burst ~= 1 or slot_of(strand, strand.permits - 1) ~= at then return end
      slots = math.min(slots, ${MOST_BURST} - strand.permits)
    elseif strand then
      return
    end
  end
  for i = 1, #sources do
    local source = sources[i]
    local t = source.target + 1
    if rooms[t] then
      slots = math.min(slots, room_after(source, now, logs[t].ahead[1].permits) - 1)
      rewind(source, source.log.total - source.max)
    else
      if source.max == 1 and every < 2 * source.window then rated[t] = true end
      if source.permit < source.log.total - size then
        if source.opens > at + every then return end
        slots = math.min(slots, repeated(source, at + every, every, 1, room, through))
      else
        if source.max * every < source.window then return end
        tight = tight or source.max * every == source.window
      end
    end
  end
  for t = 1, count do
    if not rooms[t] and not rated[t] then return end
  end
  if not tight or slots < 1 then return end
  for t = 1, count do
    if rooms[t] then
      local strand = logs[t].ahead[1]
      strand.permits = strand.permits + slots
    else
      append(logs[t], at + every, every, 1, slots)
    end
  end
  append(grant, at + every, every, 1, slots)
  for i = 1, #sources do rewind(sources[i], sources[i].log.total - sources[i].max) end
end

-- Place the permits.
local grant = {total = 0, last = -1, first = 0, start = 0, newest = 0, at = 0, every = 0, burst = 0, done = false}
local deadline, steps, most = now + wait, 0, ${PACE_WORK} / (#sources + count)
local next, target, limit
while true do
  next, target, limit = now, 255, 255
  local roomy, rooms, strands, unaligned = true, nil, 0, nil
  for t = 1, count do
    local log = logs[t]
    if log.newest > next then next, target = log.newest, t - 1 end
    if log.last - log.cut >= ${FULL} then roomy = false end
    strands = strands + #log.ahead
  end
  gaps = strands > 0
  if gaps then
    next, target, limit = earliest(now)
  else
    for i = 1, #sources do
      local source = sources[i]
      if source.opens > next then next, target, limit = source.opens, source.target, source.limit end
    end
  end
  if count > 1 and next > now then
    rooms = leaves_room(next)
    if rooms then
      unaligned = next
      next = align(rooms, next)
    end
  end
  local left, at = permits - grant.total, next
  if left > 0 and at < grant.newest then -- align, or a search that ended, left the room before it; a grant is in order
    at = earliest(grant.newest)
    rooms = leaves_room(at)
    if rooms then
      unaligned = at
      at = align(rooms, at)
    end
    if at > deadline then
      if next <= deadline then flags = flags + 2 end
      break
    end
  end
  if left <= 0 or at > deadline then break end
  if gaps and roomy and steps < most then -- the new slots need the slots ahead before them in the runs
    for t = 1, count do
      absorb(logs[t], rooms and rooms[t] or at, ${FULL})
      if logs[t].last - logs[t].cut >= ${FULL} then roomy = false end
    end
  end
  if steps >= most or not roomy then
    flags = flags + 2
    break
  end
  steps = steps + 1 + (strands + searches) / 4
  searches = 0
  if rooms then
    for t = 1, count do
      if rooms[t] then stand(logs[t], at) else append(logs[t], at, 0, 1, 1) end
    end
    append(grant, at, 0, 1, 1)
    gaps = true
  else
    for i = 1, #sources do
      local n = room_at(sources[i], at)
      if n < left then left = n end
    end
    for t = 1, count do append(logs[t], at, 0, left, left) end
    append(grant, at, 0, left, left)
  end
  for i = 1, #sources do rewind(sources[i], sources[i].log.total - sources[i].max) end
  if rooms and at == unaligned and permits > grant.total then repeat_ahead(grant, rooms, at, permits - grant.total, deadline - at) end

  -- Repeat the grant's last run for all the slots at which every limit allows exactly that. This is the case when the
  -- limit that delays the run waits for a slot of the same run, and no slot stands ahead. See pacing.placement.repeat.
  left = permits - grant.total
  local every, burst, size = grant.every, grant.burst, grant.total - grant.first
  if left > 0 and every > 0 and size % burst == 0 and not gaps then
    local at, tight, in_line, lines = grant.newest + every, false, {}, 0 -- lines: of how many targets no slot stands ahead
    local slots = math.min(math.floor(left / burst), math.floor((deadline - grant.newest) / every))
    local i = 1
    while i <= #sources and slots > 0 do
      local source, whole = sources[i], false
      local keeps = source.max == 1 and every < 2 * source.window
      if source.permit < source.log.total - size then
        if source.opens > at then slots = 0 end
        slots = math.min(slots, math.floor(repeated(source, at, every, burst, room, through) / burst))
        keeps = keeps or source.permit >= source.log.start and source.opens == at and source.every == every and
          source.burst == burst and (source.permit - source.first) % burst == 0
      else
        local within = math.floor(source.max / burst) * every
        if within < source.window then slots = 0 end
        whole = within == source.window and source.max % burst == 0
      end
      tight = tight or whole
      if (keeps or whole) and not in_line[source.target] then in_line[source.target], lines = true, lines + 1 end
      i = i + 1
    end
    if tight and slots > 0 and (lines == count or count == 1) then
      local n = slots * burst
      for t = 1, count do append(logs[t], at, every, burst, n) end
      append(grant, at, every, burst, n)
      for j = 1, #sources do move(sources[j], sources[j].permit + n, fetch) end
    end
  end
end

-- Build the reply, and write the logs.
local out = {false}
s = 0
for t = 1, count do
  local log, cursors, searched = logs[t], {}, false
  local alone, ahead = earliest(now, t), 0
  for _, strand in ipairs(log.ahead) do ahead = ahead + strand.permits end
  out[#out + 1] = pack('>I7I7', latest(log), alone)
  for i = s + 1, s + log.limits do
    local source, n, begins = sources[i], 0, 0
    rewind(source, log.total - source.max)
    if log.last >= 0 then n, begins = used(source, now - source.window, source.begins, fetch, through) end
    n = math.min(n + ahead - ahead_through(log, now - source.window), source.max)
    out[#out + 1] = pack('>I3', n)
    searched = searched or source.permit < log.first and (source.permit >= log.start or log.oldest <= now - source.window)
    if source.permit >= log.start and source.run > begins - 1 then begins = source.run + 1 end
    begins = math.max(begins - 1, log.cut)
    cursors[#cursors + 1] = begins
  end
  if log.stored > 0 or searched then log.cursors = cursors end
  s = s + log.limits
end

-- cursors_of returns the log's encoded cursors, with copies of finished runs.
local function cursors_of(log)
  local text = ''
  for _, i in ipairs(log.cursors or {}) do
    if i + ${COPIED} <= log.base then
      local copies = redis.call('GETRANGE', log.key, ${RUN} * i, ${RUN} * (i + ${COPIED}) - 1)
      text = text .. struct.pack('${CURSOR_FORMAT}', i - log.cut, i - log.cut, copies)
    else
      text = text .. struct.pack('${CURSOR_FORMAT}', i - log.cut, ${NO_COPIES}, string.rep('\0', ${COPIES}))
    end
  end
  return text
end

-- runs_of returns the log's encoded runs, from the run on that was the last one before this call.
local function runs_of(log)
  local done, packed = log.done or {}, {}
  if log.last < 0 then return '' end
  for k = 1, #done, 4 do packed[#packed + 1] = struct.pack('${RUN_FORMAT}', done[k], done[k + 1], done[k + 2], done[k + 3]) end
  packed[#packed + 1] = struct.pack('${RUN_FORMAT}', log.at, log.every, log.burst, log.first)
  return table.concat(packed)
end

-- ahead_of returns the log's encoded slots ahead, with at least so many bytes, or an empty string.
local function ahead_of(log, bytes)
  local packed = {}
  for _, s in ipairs(log.ahead) do packed[#packed + 1] = struct.pack('${STRAND_FORMAT}', s.at, s.every, s.burst, s.permits) end
  if #packed == 0 then return '' end
  local area = math.max(${STRAND} * #packed, bytes - 3)
  packed[#packed + 1] = string.rep('\0', area - ${STRAND} * #packed) .. struct.pack('>I2B', area, #packed)
  return table.concat(packed)
end

for t = 1, count do
  local log = logs[t]
  if grant.total > 0 or log.dirty then
    local cut, untl, ttl, last = log.cut, log.untl, nil, latest(log)
    if untl < last + log.keep then
      untl = last + log.keep + math.floor(log.keep / 64)
      ttl = string.format('%d', math.ceil((untl - now) / 1000) + 1)
    end
    if log.bare and log.last >= 0 then log.oldest = (log.done or {log.at})[1] end
    if cut > 0 then
      log.rewritten = log.rewritten + 1
      local _
      log.oldest, _, _, log.start = fetch(log, cut, log)
    end
    local cursors = cursors_of(log)
    local size = ${RUN} * (log.last + 1 - cut) + #cursors + ${TRAILER} -- without slots ahead
    -- A log of the same runs is written in place, so it must not get shorter.
    local again = cut > 0 or #cursors ~= ${CURSOR} * log.stored or #log.ahead == 0 and size < log.bytes
    local ahead = ahead_of(log, again and 0 or log.bytes - size)
    local data = runs_of(log) .. cursors .. ahead .. pack('${TRAILER_FORMAT}', log.total, log.last + 1 - cut, log.start, log.oldest, log.look,
      untl, log.born, log.rewritten, #cursors / ${CURSOR}, ahead == '' and ${LOG_FORMAT} or ${AHEAD_FORMAT})
    if log.fresh then
      call('SET', log.key, data, 'PX', ttl)
    else
      if again then
        local kept = log.base > cut and call('GETRANGE', log.key, ${RUN} * cut, ${RUN} * log.base - 1) or ''
        call('SET', log.key, kept .. data, 'KEEPTTL')
      else
        call('SETRANGE', log.key, ${RUN} * log.base, data)
      end
      local expires = ttl and try('PEXPIRE', log.key, ttl)
      if type(expires) == 'table' and expires.err then -- the next write tries again
        call('SETRANGE', log.key, ${RUN} * (log.last + 1 - cut) + #cursors + #ahead + ${UNTIL_AT}, '\0\0\0\0\0\0\0')
        return redis.error_reply(expires.err)
      end
    end
  end
end
-- remember stores a request and the permits that it was granted.
local function remember(key, fingerprint, granted, more)
  local text = fingerprint .. char(more and 1 or 0) .. pack('>I6', granted.total) .. (granted.total > 0 and runs_of(granted) or '')
  call('SET', key, text, 'PX', string.format('%d', life))
  return text
end

-- divide gives the requests their permits, the earliest first.
local function divide()
  local done, run, given, stop, first, at, every, burst = grant.done or {}, 0, 0, 0, 0, 0, 0, 0
  for r = 1, requests do
    local size, print = scan('${REQUEST_FORMAT}', asked, #asked + 1 - ${REQUEST} * (requests + 1 - r))
    local own = {total = 0, last = -1, first = 0, start = 0, newest = 0, at = 0, every = 0, burst = 0, done = false}
    while own.total < size and given < grant.total do
      if given == stop then -- the next run
        at, every, burst, first = done[run + 1], done[run + 2], done[run + 3], done[run + 4]
        if not at then at, every, burst, first = grant.at, grant.every, grant.burst, grant.first end
        run = run + 4
        stop = done[run + 4] or run <= #done and grant.first or grant.total
      end
      local slot, left = at, stop - given
      if every > 0 then
        local placed = (given - first) % burst
        slot = at + (given - first - placed) / burst * every
        left = math.min(left, burst - placed)
      end
      left = math.min(left, size - own.total)
      append(own, slot, 0, left, left)
      given = given + left
    end
    if own.total > 0 then remember(KEYS[key + r], print, own, flags >= 2 and own.total < size) end
  end
end

if several then
  divide()
elseif requested == 1 and (grant.total > 0 or even_nothing) then
  remembered = remember(KEYS[#KEYS], fingerprint, grant, flags >= 2)
end
out[1] = pack('>c1BI7I7BB', 'G', flags, now, next, target, limit)
if flags % 2 == 1 then
  out[#out + 1] = sub(remembered, ${REMEMBERED} - 5)
elseif grant.total > 0 then
  out[#out + 1] = pack('>I6', grant.total) .. runs_of(grant)
end
return concat(out)
