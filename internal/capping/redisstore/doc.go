// Package redisstore keeps the logs in Redis: a cluster, or one server (also
// behind Sentinels) that holds every slot. It and the packages below it are the
// only ones that know the Redis client.
//
// # The way of a batch
//
//	Store.Filter(batch)                                                  filter.go
//	  │  what instances share: for how long sends are kept               fleet.go
//	  ▼
//	script.Plan      users by partition, then by id                      script/plan.go
//	  ▼
//	dispatch.Run     commands of up to 512 users of one partition;       dispatch/run.go
//	  │              up to 64 in flight on every node                    dispatch/front.go
//	  │  which node holds the partition, and may it be believed?         topology
//	  ▼
//	dispatch.sender  one queue a node, two lanes, for all runs           dispatch/sender.go
//	  │
//	  │  one pipeline:  EVALSHA filter.lua …   one for each command      script/contract.go
//	  │                 PEXPIRE sign           was the server emptied?   topology/signs.go
//	  │                                        has it restarted?         topology/belief.go
//	  │                 WAIT n                 do n replicas have it?    topology/replicas.go
//	  │                 ROLE                   are there others by now?
//	  ▼
//	Redis            filter.lua: HMGET, judge, HSET, bucket by bucket    script/filter.lua
//	  │
//	  ▼
//	Run.settle       reply by reply: take it, try again, send it         dispatch/settle.go
//	  │              elsewhere, or give it up                            fault
//	  ▼
//	verdicts         a user without one is Unavailable
//
// # Why the library's cluster client does not do
//
//   - It sends again what was answered. When one reply of a node's pipeline is
//     late, or the first one says LOADING, READONLY, TRYAGAIN or CLUSTERDOWN, it
//     sends the node's whole pipeline a second time. A master that stood still
//     for 1.2 s under load doubled 87 sends among 13,440 decisions although
//     nobody repeated a call, and 210 when the callers had retried whom they
//     had no answer for. A master that was stopped until its replica took over
//     doubled 294 among 17,680, after retries. Under the same faults this
//     package doubles none (go test -run 'TestStormsBite|TestNeverWrong' -v).
//     With MaxRedirects -1 the client repeats nothing, and follows no MOVED either.
//   - It dials a dead master for up to a minute. Its view of the cluster is
//     refreshed every 60 s, or on a MOVED, and a node that is dead says nothing.
//     Here a refresh is asked for by every error of a connection, and there is
//     one every second.
//   - Its WAIT is sent to some node, on some connection. WAIT counts the
//     replicas that have what its own connection wrote, so that elsewhere it
//     says nothing of these sends. Here it is at the end of the pipeline
//     that wrote.
//   - It believes what the first address says: another cluster's node, or a
//     server that came back empty, would begin anew without the recorded sends.
//
// # Keyspace
//
// A bucket is 190 neighbouring user ids; it is one hash, whose fields are the
// ids' places in the bucket, in decimal, and whose values are logs (see
// capping.Log). A partition is every 64th bucket; its keys share a hash tag,
// and so a slot:
//
//	fc:{53t}:2rk   partition 0, bucket 3584 (base 36): users 680,960 to 681,149
//	fc:{53t}:m:…   the message of a token that falls on the partition: its id, or
//	               0xFF, namespace, 0xFF, id where the caller's key has a namespace
//	fc:{53t}:c:…   how many sends of the message with the token were recorded and released here
//	fc:{53t}:a:…   what was answered about a message whose text lies on the partition, and
//	fc:{53t}:a:index  such messages by their last call or import
//	fc:{53t}:-sign  the partition's sign: the latest time that its server has shown
//	fc:{53t}:-promises a copy of the ledger of broken promises, in four partitions
//	fc:{53t}:-mark  its mark: the same time, when somebody began anew, and the times of partitions on
//	               another master
//	fc:{53t}:rate:… the shared budget of a client
//	fc:{…}:p:carrier         the log of a pacer, fc:{…}:p:campaign:0a1b… that of a message;
//	fc:{…}:pf:campaign       until when its logs were forgotten, and
//	fc:{…}:pq:…              what a request was granted,
//	fc:{…}:pn:records        how many requests and logs of messages there are, by client and by when
//	                         they expire: all of them in one partition
//	fc:{format}     the format marker, and beside it, in :store, :retentions,
//	                :channels and :instances, what the instances have in common
//
// A program from before there were namespaces shows such a message as its
// namespace and id with an unprintable byte before each, takes a replay of one
// for a send of another message, and its own replays on another channel for
// the same send.
//
// The tags are chosen so that the partitions' slots are spread evenly over the
// 16,384. A bucket's field "" holds until when the key's TTL was set, so that
// most sends need not set it, and by how much it grew since idle users were
// last dropped, so that busy buckets are swept about once per half retention.
// Every key has a TTL: that of a bucket outlives its newest entry by the
// retention in force and twice the clock tolerance, and by at most 1/64 more.
// Where a retention grows, a key's next send extends it; what had expired by then
// is gone.
//
// # Formats
//
// The marker names the version of the stored format, the least version that a
// program has to know to read and write along, and the keyspace (bucket size,
// partitions, epoch). script/format.go lists the versions that this program
// knows: it reads 1 and 2.
//
//	1  capper log 1 bucket 190 partitions 64 epoch 2024-01-01
//	2  capper log 2 least 2 bucket 190 partitions 64 epoch 2024-01-01
//
// Logs are the same in both. What 2 brings is that a program goes on beside a
// newer one whose changes it need not know: format 3 with "least 2" is taken by
// programs of format 2, and its marker left as it is. One of format 1 takes
// only its own marker.
//
// A store moves to the newest format by itself, in a beat, and not before every
// instance that was heard of within half a minute has told that it reads it;
// programs of format 1 tell nothing and so hold it back. So a fleet is upgraded
// one instance after the other, nobody is unavailable meanwhile, and one
// instance that is left on the older version keeps the way back open. Who
// starts afterwards with an older version is refused, with both versions and
// what to do; who ran unheard of for half a minute finds out at its next beat
// and stops deciding. Both write nothing. Open also refuses a keyspace of other
// dimensions.
//
// Both formats have the same logs, so that no log is ever rewritten. The first format that changes the logs has
// to bring the program part that rewrites them.
//
// # What instances have in common
//
// Every five seconds each instance beats (fleet.go, beat.lua): it renews the
// records, tells which configuration it has, and learns
//
//   - the retention in force: the longest that any instance has renewed within
//     itself. A call judges by its own policy's and forgets by that in force, so
//     that a policy which is gone for a moment, or from one instance, erases
//     nothing. Where the records cannot be reached it does not fall;
//   - numbers of channels: one that contradicts what is stored is refused;
//   - who else is there, and in what they differ.
//
// # What wipes out
//
// A sign stands for all that is recorded in a partition: it is there as long as
// the server was not emptied (topology/signs.go). Each pipeline reads the sign of
// its last command's partition behind the commands: where it is missing, the
// server may have been emptied before any of them, and none is answered. A beat
// looks at all the signs; a partition without one is barred, and its users are
// unavailable. A sign holds the latest time that its server has shown: while the
// clock is behind it, keys may have expired too early. Only Open makes signs
// anew, and says so.
//
// A server can lose logs and keep the sign. Redis 7 loads its append-only file as the user default, and
// drops the transactions that this user may not run. Scripts write logs in transactions; a
// single SET is none. So a look writes twice (topology/sign.lua): first the mark, a hash, by two commands
// of one script, then the sign, by one command, with the mark's time. A sign that is later than its mark
// says that transactions were dropped after the look before. A file that was cut short never
// leaves that, as the mark is written first. Of what was dropped since the file was rewritten, and before the
// next look, the marks show nothing: who sees that a master restarted asks whether its user default
// has all rights, and writes down in the signs (.75) that records are lost where it has not.
//
// A server can also come back with an older state, in which sign and mark agree (topology/points.go). Each
// instance remembers the time of each mark that as many replicas had as a send needs. It counts when it
// was there for four seconds, more than appendfsync everysec costs: with the pause between two looks, some
// ten seconds may be missing unseen. The mark of a
// partition half of all slots away keeps it as well, so that another master remembers when all
// instances restart. A mark that is earlier bars its partition. The look that finds one notes that in the mark, with
// the beginning of the records that it is about, and in the sign (.75, for earlier versions): it holds for instances
// that remember nothing, until somebody begins anew. The newest files do not have the note. A point settles by two
// looks at one run of a server, since a start may lose the first look's second. Who begins anew writes down when, and
// times before that count no more.
//
// The logs are lost before the sign is looked at: a server that started is not believed until its signs
// are. The first command on each connection asks for the number that a server draws when it starts; where
// it is a new one, the pipeline's answers do not count, the signs are looked at, and its
// commands are sent again (topology/belief.go). The same holds for a server that has become a master.
//
// Instances of versions before there were marks read and write the sign alone, without its fraction: a sign
// that they wrote last says nothing of the mark. What they begin anew, newer ones go on barring until one
// of them is restarted.
//
// A slot that is moved has its keys on two nodes. Each refresh asks the masters,
// those without slots too, what they import (topology/moves.go): a slot whose
// owner is neither the node that imports it nor the one it is imported from was
// torn by a failover, and is barred until it is mended. As that is known before
// the failover, no command reaches the new owner.
//
// # Broken promises
//
// A server whose policy evicts, or whose append-only file is off, may lose logs and keep signs. Each refresh
// reads that from INFO, and evicted_keys with it. Behind its commands a pipeline for 128 users or more asks
// for evicted_keys again, a smaller one every 10 ms: a key that was gone before any of the commands shows, in
// whatever order the policy was set, keys were evicted and the policy was put back. A breach bars the
// partitions that the server holds. It stands in the ledger (topology/ledger.go): in each instance's memory
// and in a hash in four partitions, fc:{…}:-promises, merged field by field with every beat, the later word first.
// The ledger also has evicted_keys of every run of a server, so that what was evicted while no instance ran shows.
// It has as well which runs had their append-only file on: without replicas to confirm, only these need it.
// Store.AcceptLoss closes breaches, and takes the counters as they are by then. First it begins anew the partitions
// that lost their sign or mark by what the breach is about (topology/mend.go), and the store's records where they
// are gone. What was lost otherwise stays barred: an older state, dropped records, a server that was emptied.
//
// # A filter call
//
// A run stays on its caller's goroutine and alone touches the batch; nothing that
// it learns after its context ended is written to the caller's slices. A script
// stops early when it has read 200 kB of logs, and the run asks again for the
// rest. A command carries the rules of its users' groups alone, and fewer users
// where the rules are many. So no command holds the server's thread for long, and
// a node that is slow or dead holds up only the users it has.
//
// Shadow rules are judged beside the others, and a reply names them where they would
// have denied somebody who is allowed. Of a send that an earlier attempt of the call
// had recorded, whose answer was lost, it names none. Instances of versions before there
// were shadow rules go on beside newer ones: each brings its own scripts along, and
// what is stored is the same.
//
// # Pacers
//
// All pacers of a namespace lie in one partition, so that one script takes the
// permits of several at once (package pace, script/pace.lua). It is one durable command
// of the dispatcher: what holds for a send holds for a grant. Slots are by the
// server's clock, to the microsecond, and the caller's stamp only guards it: a failover to
// a server whose clock is ahead shortens windows by as much, at most by twice clock_skew.
//
// A log is a string of runs (package pacing), with what a call needs to know of it at
// its end: a call reads the end, and writes what it appends together with the new
// end. Each limit that looks back has a cursor, so that the next call goes on where it
// stood; a cursor that is wrong costs a search. What is asked most, permits of one log
// that all have one slot, has a short way of its own at the script's beginning
// (paceone.lua); the differential tests take both. Callers who ask the same pacers
// while one of them is asking, without request ids, share the next call (pace/join.go):
// one ask for all their permits, whose grant they get in the order in which they came.
//
// Runs that nobody sees any more are dropped by the script. A log that is full all
// the same takes no more until one of those who met it has read it, merged it
// (pacing.Log.Merge) and put it back, if it still was what had been read (merge.lua).
//
// A request with an id is remembered in a key of its own, for the longest wait it could
// have been given and a minute. Forgetting a pacer removes its log and notes the
// time: logs of its messages that are older count as empty, and expire. Logs that
// are made while the clock is behind that note are made after it all the same.
//
// A lost answer is asked for again; without a request id that may take twice, which
// costs the rate, never the limit. Programs from before there were pacers leave these
// keys alone and need no other format beside them; their user lacks the commands
// GETRANGE and SETRANGE, see deploy/redis.acl.
//
// # Counts by message
//
// Of messages that are remembered, filter.lua counts the sends that it recorded, and
// release.lua those that it removed, in a hash of the message in the same partition: fields 7 and
// 7r for channel 7 (script/counts.lua). The count rides with the write. A call that is asked
// again finds its sends and records, and so counts, nothing; a failover loses a send and its
// count together; erasing and forgetting count nothing. One HINCRBY does it for all users of a call: above the
// count its field holds until when the key lasts, so that a PEXPIRE is needed once in six
// hours. Counts are kept as long as the logs, a day at least and a month at most, after the last call that
// recorded. Releases count only where the message is counted already.
//
// A script reaches one key only while the keys of a slot are on two nodes. The run then splits a command into commands
// of one bucket, which count nothing. Before that it marks the counts of the message in this partition as lower bounds
// (atleast.lua, the field "least"), so that a crash cannot leave uncounted sends without the mark. Readers show such
// counts as "at least". Earlier versions ignore the field; they counted these sends afterwards, once, or lost them.
//
// Answers are added by answers.lua, a command for each message and channel, with the message's text, beside
// a sorted set of the partition's messages by their last call. The hash knows its
// latest flushes: one that is sent again because its answer was lost adds nothing. Package
// campaign says what happens to those of which no answer came at all. Names of limits,
// segments and sets are bounded to some 4,000 a message, versions of the configuration to 100.
//
// A list reads the partitions' indexes from their ends, as far as it has to, then each
// message's hashes in all partitions, 64 messages at a time. A shard that does not answer
// is an error: no part is told as the whole.
//
// Instances of versions before there were counts leave these keys alone, need no other
// format, and record without counting: while one of them takes calls, counts are too
// low. What is new is that the user needs HINCRBY, HGETALL, ZADD, ZREMRANGEBYSCORE and ZREVRANGEBYSCORE.
//
// # Guarantees
//
//   - A verdict of Allowed or Replayed is answered only when as many replicas
//     as Config.ReplicaAcks asks have confirmed everything that the node had
//     written before: a WAIT on the same connection, in the same pipeline. A
//     replay waits as well, since what it found may be on the master only. The
//     question for the sign is a write for that: until Redis 7.0 a WAIT counted who
//     had all that its connection had seen, since then who has what it wrote.
//   - How many replicas work is counted every second. One that is new, or comes back, may be
//     made master before the next count: ROLE, behind the WAIT, names those that the master
//     feeds by then, and how far each has confirmed. Where one was not among the counted, or
//     more than were counted have confirmed something since, the commands count as not
//     confirmed and are sent again, after a count. A replica that hangs, which the cluster has
//     given up, confirms nothing and holds nobody up. A number in Config.ReplicaAcks
//     is a number: nobody is asked for names then, nor where the user lacks the right.
//     What no client can close: sends that were confirmed while a replica was away are not on it
//     until it has caught up. A cluster has whoever is behind stand for election last.
//   - A command whose answer was lost is sent again. The token in the log tells
//     that it had been recorded; when that was at or after the first attempt of
//     this very call, the answer is Allowed and not Replayed.
//   - A call that was held up on its way is refused like one with a wrong clock,
//     when it comes later than the tolerance after it was stamped: a release
//     must not remove what was sent since its repetition was answered.
//   - Only who has the history of the master in use takes over from it,
//     and only nodes of the cluster in use are asked for its slots (package
//     topology): another server would start without the recorded sends.
//   - A script checks all its arguments before it writes. A full server (OOM)
//     and a clock beyond the tolerance are refused before the first write. A
//     bucket of another type and a log of a wrong length cost only their users.
//   - Too few replicas: unavailable, never allowed. Nothing lowers the count. When that has been
//     known for a second, calls are told at once and do not wait (topology/lack.go).
//
// What is lost when every copy of a shard is lost is lost here too. Redis
// syncs its append-only file every second, and may put the write itself off
// while a sync takes longer than a second: a master that is killed in that
// state and restarts before a failover comes back without its newest sends and
// makes its replicas forget them. "appendfsync always" closes that gap.
//
// # Measured
//
// scripts/bench-redis.sh compares with the usual design (baseline/). docs/benchmarks.md has the
// table, and docs/design/benchmarks.md the rejected designs.
package redisstore
