// Recounts a Parquet export of the audit, for TestCountsAreThoseOfDuckDB of internal/pressure:
//   node pressure.mjs EXPORT.parquet MEMBERS.csv LIMITS.csv UNTIL_MS WEEKS
// MEMBERS.csv has the columns u and segment. LIMITS.csv has segment, name, most, window_ms and channel ("": all).
// Writes a JSON object with a list of rows for each question. The history has no results that are unknown.
import { DuckDBInstance } from '@duckdb/node-api';

const [exported, members, limits, until, weeks] = process.argv.slice(2);
const week = 7 * 24 * 3600 * 1000;
const end = `${until}::bigint`;
const db = await (await DuckDBInstance.create()).connect();
await db.run(`
create table events as select user_id as u, message_id as m, coalesce(namespace, '') as ns, coalesce(channel, '') as ch,
  outcome, "limit" as l, coalesce("set", '') as suppressed, epoch_ms(time)::bigint as t, sequence as s
  from read_parquet('${exported}');
create table members as select * from read_csv('${members}', header = true, columns = {u: 'bigint', segment: 'varchar'});
create table limits as select * from read_csv('${limits}', header = true,
  columns = {segment: 'varchar', name: 'varchar', most: 'int', window_ms: 'bigint', channel: 'varchar'});
update limits set channel = '' where channel is null;
-- A send, the next one to the user of the message on the channel, and the release between both that took it back.
create table sends as
  with allowed as (select *, lead(s) over (partition by u, m, ns, ch order by s) as next
    from events where outcome = 'allowed')
  select a.u, a.m, a.ns, a.ch, a.t, a.s, (${end} - 1 - a.t) // ${week} as week, min(r.s) as taken
  from allowed a left join events r on r.outcome = 'released' and r.u = a.u and r.m = a.m and r.ns = a.ns
    and (r.ch = '' or r.ch = a.ch) and r.s > a.s and (a.next is null or r.s < a.next)
  group by all;
create table counted as select * from sends where week >= 0 and week < ${weeks};
create table kept as select counted.*, coalesce(segment, 'default') as segment
  from counted left join members using (u) where taken is null;
create table held as select * from (
  select *, row_number() over (partition by u, m, ns, ch order by s) as first, (${end} - 1 - t) // ${week} as week
  from events where outcome = 'denied' and suppressed = '' and t >= ${until - weeks * week}) where first = 1;
`);

const rows = async (sql) => (await db.runAndReadAll(sql)).getRowObjectsJson();
const spread = (by, of, where = '') => `
  select '${by}' as by, name, week, n, count(*) as users from (
    select ${of} as name, week, u, count(*) as n from kept ${where} group by all) group by all`;
const answer = {
  people: await rows(`${spread('all', "''")} union all ${spread('segment', 'segment')} union all
    ${spread('channel', 'ch')} union all ${spread('namespace', 'ns')}`),
  at_limits: await rows(`
    select segment, name, count(*) as users from (
      select l.segment, l.name, x.u from limits l
      join (select sends.*, coalesce(segment, 'default') as segment from sends left join members using (u)
        where taken is null) x on x.segment = l.segment and x.t > ${end} - l.window_ms
        and (l.channel = '' or l.channel = x.ch)
      group by l.segment, l.name, l.most, x.u having count(*) >= l.most) group by all`),
  campaigns: await rows(`
    select m, ns, ch, week, count(*) filter (where taken is null) as sends, count(taken) as released
    from counted group by all`),
  held: await rows('select m, ns, ch, week, count(*) as users from held group by all'),
  taken: await rows(`
    with spans as (select name, max(window_ms) as window_ms, bool_or(channel = '') as every,
      list(channel) as channels from limits group by name)
    select h.m, h.ns, h.ch, s.m as by_m, s.ns as by_ns, s.ch as by_ch, count(distinct h.u) as users
    from held h join spans on spans.name = h.l join sends s on s.u = h.u and s.s < h.s
      and s.t > h.t - spans.window_ms and (spans.every or list_contains(spans.channels, s.ch))
      and (s.taken is null or s.taken > h.s)
    group by all`),
};
process.stdout.write(JSON.stringify(answer));
