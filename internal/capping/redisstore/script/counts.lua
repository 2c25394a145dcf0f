-- Counts new sends of a message: a field in the hash of its counts in one partition. Other scripts contain this text,
-- and set these variables first:
--
-- counts   the key; field: the channel's number
-- new      how many new sends; 0 creates a missing field
-- now      milliseconds since 2024; keep: the retention of the logs
--
-- The lower bits of a field, below 2^${COUNT_BITS}, hold the count. The bits above hold the earliest expiry of the key,
-- in hours since 2024. So one command adds and returns whether the TTL must grow, which happens once in
-- ${COUNT_SLACK} hours. A failed count must not undo recorded sends, so a key of another type is left unchanged.
if new > 0 or try('HEXISTS', counts, field) == 0 then
  local total = try('HINCRBY', counts, field, new)
  if type(total) == 'number' then
    local lasts = math.min(math.max(keep, ${COUNT_LEAST}), ${COUNT_MOST})
    local least, untl = math.ceil((now + lasts) / 3600000), math.floor(total / 2 ^ ${COUNT_BITS})
    if untl < least then
      try('HINCRBY', counts, field, string.format('%.0f', (least + ${COUNT_SLACK} - untl) * 2 ^ ${COUNT_BITS}))
      try('PEXPIRE', counts, string.format('%.0f', (least + ${COUNT_SLACK}) * 3600000 - now))
    end
  end
end
