-- Counts new sends of a message in a field of its counts, a hash for each partition. This
-- text stands inside of others, which have set
--
-- counts   the key; field: the channel's number
-- new      how many, also 0: then the field is made where there is none
-- now      milliseconds since 2024; keep: for how long logs are kept
--
-- A field holds the count, below 2^${COUNT_BITS}, and above it until when the key lasts at least, in
-- hours since 2024: so that one command adds and tells whether the TTL has to grow, which
-- it does once in ${COUNT_SLACK} hours. What is counted is no reason to refuse what was recorded: a key of
-- another type is left as it is.
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
