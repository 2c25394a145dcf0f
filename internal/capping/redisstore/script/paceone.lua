-- The start of pace.lua, and a shortcut for the most frequent call: permits of one log that all have one slot, or none,
-- where no limit needs a search. The header of pace.lua explains all terms. The shortcut decides exactly like the rest,
-- at a quarter of the cost. In every other case it leaves the call to the rest, with nothing written. New strings,
-- function calls and tables are costly here.
repeat
  local scan, pack, call, format, asked = struct.unpack, struct.pack, redis.call, string.format, ARGV[1]
  if #ARGV ~= 1 or #asked < ${PACE_HEADER} + 17 then break end
  local stamp, skew, permits, wait, life, requested, count, per_message, keep, limits, max, window = scan('${PACE_ONE_FORMAT}', asked)
  if count ~= 1 or requested == 2 or requested > 3 or permits > ${MOST_PERMITS} or wait > ${LONGEST_WAIT} or per_message ~= 0 or limits < 1 or limits > ${LIMITS} then break end
  local closes = ${PACE_HEADER} + 8 + 9 * limits -- end of the target
  if requested == 3 then
    if #KEYS < 2 or #asked ~= closes + ${REQUEST} * (#KEYS - 1) then break end
  elseif #KEYS ~= 1 + requested or #asked ~= closes + 8 * requested then break end
  if permits > 1 and permits > max then break end -- such permits get separate slots
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if skew > 0 then
    local off = (now - now % 1000) / 1000 - ${EPOCH} - stamp
    if off > skew or off < -skew then break end
  end

  local tail = redis.pcall('GETRANGE', KEYS[1], limits == 1 and '-${SHORT_1}' or limits == 2 and '-${SHORT_2}' or '-${TAIL}', '-1')
  local size = #tail
  if tail == '' then
    -- The first permits of a log.
    local least, next, why = max, now, 255
    for l = 1, limits do
      if l > 1 then max, window = scan('>I3I6', asked, ${PACE_HEADER} + 9 * l) end
      if max < least then least = max end
      if max == permits and now + window > next then next, why = now + window, l - 1 end
      if window < 1 then least = 0 end
    end
    if permits < 1 or permits > least or requested > 0 then break end
    local life = keep + (keep - keep % 64) / 64
    call('SET', KEYS[1], pack('${RUN_FORMAT}${TRAILER_INTS}', now, 0, 1, 0, permits, 1, 0, now, ${LOOK}, now + life, now, 0, 0, ${LOG_FORMAT}),
      'PX', format('%d', (life - life % 1000) / 1000 + 2))
    return pack('>c1I7I7I7BI3', 'S', now, now, next, why, permits) .. string.rep('\0\0\0', limits)
  end
  if size < ${TRAILER} + ${RUN} then break end -- an error
  local at, every, burst, first, total, runs, start, oldest, look, untl, _, _, stored, version =
    scan('${RUN_FORMAT}${TRAILER_INTS}', tail, size - ${TRAILER} - ${RUN} + 1)
  local ends = size - ${TRAILER} - ${CURSOR} * stored -- end of the runs
  if version ~= ${LOG_FORMAT} or runs >= look or ends < ${RUN} or stored > 0 and stored ~= limits then break end
  if stored > 0 then
    at, every, burst, first = scan('${RUN_FORMAT}', tail, ends - ${RUN} + 1)
  end
  local last, from = runs - 1, runs - (ends - ends % ${RUN}) / ${RUN} -- from: the first run in tail
  local newest, length = at, total - first
  if every > 0 then newest = at + (length - 1 - (length - 1) % burst) / burst * every end

  -- next is the slot of the next permit. behind and own give the slot of the permit after the grant: behind where
  -- limits wait for recorded slots; own where they wait for the granted slot, as a distance from that slot.
  local next, why, behind, behind_why, own, own_why, used, cursors, unknown = now, 255, 0, 255, 0, 255, '', '', false
  if newest > now then next, why = newest, 254 end
  local near, only = true, 0
  for l = 1, limits do
    if l > 1 then max, window = scan('>I3I6', asked, ${PACE_HEADER} + 9 * l) end
    local source, t = total - max, now - window
    local n, slot, a, e, b, f, stop, after -- after: the slot of the permit stop
    if newest <= t then
      n = 0
    elseif source >= first or at <= t then
      a, e, b, f, stop = at, every, burst, first, total
    elseif source < start and oldest > t then
      n = total - start
    elseif stored == 0 then
      near = false
      break
    end
    if stored > 0 then
      local i, copied, copies = scan('${CURSOR_FORMAT}', tail, ends + 1 + ${CURSOR} * (l - 1))
      if not n and not a then
        if i > last then i = last end
        for step = 1, 12 do
          -- Read the run i, then the runs after the cursor.
          local ra, re, rb, rf = at, every, burst, first
          if i < last then
            local text, offset = tail, ends - ${RUN} * (runs - i)
            if i < from then
              if i < copied or i >= copied + ${COPIED} then
                copied = step > 1 and i - 1 or i -- with the cursor's own run
                if copied > last - ${COPIED} then copied = last - ${COPIED} end -- the last run has no copy, because it may change
                if copied < 0 then
                  near = false
                  break
                end
                copies = call('GETRANGE', KEYS[1], format('%d', ${RUN} * copied), format('%d', ${RUN} * (copied + ${COPIED}) - 1))
              end
              text, offset = copies, ${RUN} * (i - copied)
            end
            ra, re, rb, rf = scan('${RUN_FORMAT}', text, offset + 1)
          end
          if ra > t and rf > source then
            if step > 1 then i, stop, after = i - 1, rf, ra break end
            if i > 0 then break end
          end
          a, e, b, f = ra, re, rb, rf
          if i == last then stop = total break end
          i = i + 1
        end
        near = near and stop and true
      end
      cursors = cursors .. pack('${CURSOR_FORMAT}', i, copied, copies)
    end
    if not n and near then
      if source >= f then
        slot = a
        if e > 0 then slot = a + (source - f - (source - f) % b) / b * e end
      end
      if slot and slot > t then
        n = max
        if slot + window > next then next, why = slot + window, l - 1 end
      else
        n = total - f -- without those up to t
        if t >= a then
          local through = stop - f
          if e > 0 then through = math.min(through, ((t - a - (t - a) % e) / e + 1) * b) end
          n = n - through
        end
        if n > max then n = max end
      end
    end
    if not near or max < 1 or window < 1 or permits > 1 and n + permits > max then
      near = false
      break
    end
    if n + permits >= max then
      source = source + permits
      if source >= total then
        if window > own then own, own_why = window, l - 1 end
      else
        local ra, re, rb, rf = a, e, b, f
        if source >= first then
          ra, re, rb, rf = at, every, burst, first
        elseif source == stop and after then
          ra, re = after, 0
        elseif not a or source >= stop then
          unknown, re = true, 0
        end
        if re > 0 then ra = ra + (source - rf - (source - rf) % rb) / rb * re end
        if not unknown and ra + window > behind then behind, behind_why = ra + window, l - 1 end
      end
    end
    if limits > 1 then used = used .. pack('>I3', n) else only = n end
  end
  if not near then break end
  if permits == 0 or next > now + wait then
    if requested > 0 then break end -- the rest checks whether it is remembered
    if limits == 1 then return pack('>c1I7I7I7BI3I3', 'S', now, newest, next, why, 0, only) end
    return pack('>c1I7I7I7BI3', 'S', now, newest, next, why, 0) .. used
  end

  local slot = next
  if unknown or untl < slot + keep then break end
  why = 255
  if slot > now then why = 254 end
  if behind > next then next, why = behind, behind_why end
  if slot + own > next or own > 0 and slot + own == next and own_why < why then next, why = slot + own, own_why end

  -- The last run continues, or a new run begins; see append in the rest.
  local gap, joins = slot - newest, false
  if every == 0 then
    joins = gap == 0 or gap <= ${MOST_EVERY} and length <= ${MOST_BURST} and permits <= length
    if gap > 0 and joins then every, burst = gap, length end
  elseif gap == 0 then
    joins = permits <= burst - 1 - (length - 1) % burst
  else
    joins = gap == every and length % burst == 0 and permits <= burst
  end
  if not joins then last, runs, at, every, burst, first = runs, runs + 1, slot, 0, 1, total end
  local data, fixed = nil, string.sub(tail, -${FIXED})
  if stored == 0 then
    data = pack('${RUN_FORMAT}${COUNTS}c${FIXED}', at, every, burst, first, total + permits, runs, fixed)
  else
    data = pack('${RUN_FORMAT}', at, every, burst, first) .. cursors .. pack('>${COUNTS}c${FIXED}', total + permits, runs, fixed)
  end
  if requested == 1 then
    local grant = pack('>c8BI6${RUN_INTS}', string.sub(asked, -8), 0, permits, slot, 0, 1, 0)
    local kept = redis.pcall('SET', KEYS[2], grant, 'NX', 'PX', format('%d', life))
    if not kept or kept.err then break end -- it is remembered
  elseif requested == 3 then
    local own, text, repeated = 0, '', false
    life = format('%d', life)
    for r = 2, #KEYS do
      local size, fingerprint = scan('${REQUEST_FORMAT}', asked, closes + 1 + ${REQUEST} * (r - 2))
      if size ~= own then own, text = size, pack('>BI6${RUN_INTS}', 0, size, slot, 0, 1, 0) end
      local kept = redis.pcall('SET', KEYS[r], fingerprint .. text, 'NX', 'PX', life)
      if not kept or kept.err then
        if r > 2 then call('DEL', unpack(KEYS, 2, r - 1)) end
        repeated = true
        break
      end
    end
    if repeated then break end -- the rest finds all that are remembered
  end
  local wrote = redis.pcall('SETRANGE', KEYS[1], format('%d', ${RUN} * last), data)
  if type(wrote) == 'table' then -- an error: nothing was taken, so nothing is remembered
    if requested > 0 then call('DEL', unpack(KEYS, 2)) end
    return redis.error_reply(wrote.err)
  end
  if limits == 1 then return pack('>c1I7I7I7BI3I3', 'S', now, slot, next, why, permits, only) end
  return pack('>c1I7I7I7BI3', 'S', now, slot, next, why, permits) .. used
until true
