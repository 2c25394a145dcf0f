-- Joins an export of the audit with a table of new user ids, for docs/moving.md.
--
--   sqlite3 moving.db <sends-of-audit.sql
--
-- reads past.ndjson (capper audit export) and users.csv (a header; then the old id and the new id of each user), and
-- writes sends.csv for capper import. All files are in the current directory; moving.db can be removed afterwards.
.bail on
.once /dev/null
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -500000;
CREATE TABLE users (old INTEGER PRIMARY KEY, new TEXT NOT NULL);
CREATE TABLE lines (line TEXT);
.mode csv
.import --skip 1 users.csv users
.mode ascii
.separator "\001" "\n"
.import past.ndjson lines

-- The rows of past are in the order of time, like the export.
CREATE TABLE past AS
  SELECT line ->> 'user_id' AS user, line ->> 'namespace' AS namespace, line ->> 'message_id' AS message,
    line ->> 'channel' AS channel, line ->> 'outcome' AS outcome, line ->> 'time' AS time, line ->> 'took_ms' AS took
  FROM lines
  WHERE line ->> 'outcome' IN ('allowed', 'replayed', 'released')
  ORDER BY lines.rowid;
DROP TABLE lines;

-- A release without a channel gives back the sends of the message on all channels.
CREATE TABLE released AS
  SELECT user, namespace, message, channel, max(rowid) AS place FROM past WHERE outcome = 'released' GROUP BY 1, 2, 3, 4;
CREATE INDEX released_of ON released (user, namespace, message);

-- A send counts from the end of its call, so no limit ends earlier than before the move. Of the calls for one send since
-- its last release, the first one recorded the send.
CREATE TABLE sends AS
  SELECT user, namespace, message, channel,
    strftime('%Y-%m-%dT%H:%M:%fZ', time, printf('+%.3f seconds', took / 1000.0)) AS at, min(past.rowid) AS place
  FROM past
  WHERE outcome <> 'released' AND NOT EXISTS (
    SELECT 1 FROM released AS r
    WHERE r.user = past.user AND r.namespace = past.namespace AND r.message = past.message
      AND r.channel IN (past.channel, '') AND r.place > past.rowid)
  GROUP BY 1, 2, 3, 4;

.mode csv
.headers on
.once sends.csv
SELECT users.new AS user_id, at, channel, message AS message_id, namespace FROM sends JOIN users ON users.old = sends.user;
.mode list
.headers off
SELECT count(*) || ' sends of ' || count(DISTINCT user) || ' users; the table of users lacks '
  || count(*) FILTER (WHERE users.old IS NULL) || ' of them'
FROM sends LEFT JOIN users ON users.old = sends.user;
