-- Replaces a full log by its merged form, unless the log has changed.
--
-- KEYS[1]  the log, see pace.lua
-- ARGV[1]  its slots ahead and its trailer as they were read
-- ARGV[2]  the merged log: runs, cursors, slots ahead and trailer
--
-- Reply    D the log was replaced, N the log has changed: nothing was written
-- Errors   BADARG …: nothing was written.
-- Cost     linear in the log's bytes.
if #KEYS ~= 1 or #ARGV ~= 2 or #ARGV[1] < ${TRAILER} or #ARGV[2] < ${TRAILER} + ${RUN} or string.byte(ARGV[2], -1) ~= string.byte(ARGV[1], -1) then
  return redis.error_reply('BADARG a key, a trailer and a log')
end
if redis.call('GETRANGE', KEYS[1], -#ARGV[1], '-1') ~= ARGV[1] then return 'N' end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 'D'
