-- Rewrites the logs of buckets into a newer format. It may run twice, and beside every other script.
--
-- KEYS     buckets, whether there or not
--
-- Reply    how many of the keys are done, from the first: it ends early when the call has used up
--          its share of time
-- Errors   those of commands, such as a missing right. A key of another type is left alone.
-- Cost     an HLEN per key; for those that are there an HSCAN, an HSET and an HDEL; linear in the bytes of the logs.

-- rewrite is the log in the newer format: the same where it is in it already.
local function rewrite(log)
  ${REWRITE}
end

local call, work = redis.call, 0
for k = 1, #KEYS do
  local key, cursor = KEYS[k], '0'
  local length = redis.pcall('HLEN', key)
  if type(length) == 'table' and length.err and not wrongtype(length.err) then return redis.error_reply(length.err) end
  while cursor and type(length) == 'number' and length > 0 do
    local page, changed, gone = call('HSCAN', key, cursor, 'COUNT', '256'), {}, {}
    cursor = page[1] ~= '0' and page[1]
    for i = 1, #page[2], 2 do
      local name, log = page[2][i], page[2][i + 1]
      work = work + #log
      local after = name ~= '' and #log % ${ENTRY} == 0 and rewrite(log) or log
      if after ~= log and after == '' then
        gone[#gone + 1] = name
      elseif after ~= log then
        changed[#changed + 1] = name
        changed[#changed + 1] = after
      end
    end
    if #changed > 0 then call('HSET', key, unpack(changed)) end
    if #gone > 0 then call('HDEL', key, unpack(gone)) end
  end
  if work > ${WORK} then return tostring(k) end
end
return tostring(#KEYS)
