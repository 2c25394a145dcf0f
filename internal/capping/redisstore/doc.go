// Package redisstore keeps the logs in Redis: a cluster, or one server (also
// behind Sentinels) that holds every slot. It is the only package that knows
// the Redis client.
//
// # Layout
//
// A bucket is 190 neighbouring user ids; it is one hash, whose fields are the
// ids' places in the bucket, in decimal, and whose values are logs (see
// capping.Log). A partition is every 64th bucket; its keys share a hash tag,
// and so a slot:
//
//	fc:{53t}:2rk   partition 0, bucket 3584 (base 36): users 680,960 to 681,149
//	fc:{53t}:m:…   the message of a token that falls on the partition: its id, or
//	               0xFF, namespace, 0xFF, id where the caller's key has a namespace
//	fc:{53t}:-sign  the partition's sign: the latest time that its server has shown
//	fc:{53t}:rate:… the shared budget of a client
//	fc:{format}     the format record, and beside it, in :store, :retentions,
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
// The format record names version, bucket size, partitions and epoch. Open
// refuses a keyspace whose record differs; a running store that finds another
// record when it renews its own stops deciding.
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
// the server was not emptied (signs.go). Each pipeline reads the sign of its last
// call's partition behind the calls: where it is missing, the server may have
// been emptied before any of them, and none is answered. A beat looks at all the
// signs; a partition without one is barred, and its users are unavailable. A sign
// holds the latest time that its server has shown: while the clock is behind it,
// keys may have expired too early. Only Open makes signs anew, and says so.
//
// A slot that is moved has its keys on two nodes. Each refresh asks the masters,
// those without slots too, what they import (parted.go): a slot whose owner is
// neither the node that imports it nor the one it is imported from was torn by a
// failover, and is barred until it is mended. As that is known before the
// failover, no call reaches the new owner.
//
// # A filter call
//
// A run (run.go) orders the users by partition, cuts calls of up to 512 users,
// and keeps up to 64 of them in flight on every node; it runs on the caller's
// goroutine and alone touches the batch. A node (node.go) takes calls of all
// runs from one queue and sends them as pipelines: EVALSHA for each call, WAIT
// last. Its filter.lua judges and records, bucket by bucket: HMGET, judge,
// one HSET. A script stops early when it has read 200 kB of logs; the run asks
// again for the rest. A call carries the rules of its users' groups alone, and
// fewer users where they are many. So no call holds the server's thread for long.
//
// What comes back is classified reply by reply (fault.go). A run tries again
// until all users are settled or its context ends; nothing it learns then is
// written to the caller's slices. A node that is slow or dead holds up only
// the users it has.
//
// # Guarantees
//
//   - A verdict of Allowed or Replayed is answered only when as many replicas
//     as Config.ReplicaAcks asks have confirmed everything that the node had
//     written before: a WAIT on the same connection, in the same pipeline. A
//     replay waits as well, since what it found may be on the master only.
//   - A command whose answer was lost is sent again. The token in the log tells
//     that it had been recorded; when that was at or after the first attempt of
//     this very call, the answer is Allowed and not Replayed.
//   - A call that was held up on its way is refused like one with a wrong clock,
//     when it comes later than the tolerance after it was stamped: a release
//     must not remove what was sent since its repetition was answered.
//   - Only who has the history of the master in use takes over from it (master.go),
//     and only nodes of the cluster in use are asked for its slots (survey.go):
//     another server would start without the recorded sends.
//   - A script checks all its arguments before it writes. A full server (OOM)
//     and a clock beyond the tolerance are refused before the first write. A
//     bucket of another type and a log of a wrong length cost only their users.
//   - Too few replicas: unavailable, never allowed. Nothing lowers the count.
//
// What is lost when every copy of a shard is lost is lost here too. Redis
// syncs its append-only file every second, and may put the write itself off
// while a sync takes longer than a second: a master that is killed in that
// state and restarts before a failover comes back without its newest sends and
// makes its replicas forget them. "appendfsync always" closes that gap.
//
// # Measured
//
// scripts/bench-redis.sh compares with the usual design (baseline/) and prints
// the table that the README shows. What was tried on the way, in µs of Redis
// CPU per decision and bytes per user, Redis 7.0.15 on a busy machine of two
// cores, so that only rows of one group compare. Every send comes 34 hours
// after the last, so that each drops an old entry and sets the TTL. Blast: one
// id in 27, calls of 65,536; random: 10,000 users of 1 million a call.
//
//	                                                    blast   random   one in 27   every id
//	fields of one byte, buckets of  32, 128 partitions   5.29     6.86       190        84
//	                                64, 128 partitions   3.61     6.96       126        82
//	                               128, 128 partitions   2.78     6.70       102        81
//	                               128, 256 partitions   2.63     7.13       102        81
//	numbers as fields,  buckets of  62, 128 partitions   3.19     5.86       128        68
//	                               126, 128 partitions   2.41     5.78       103        66
//	                               126, 256 partitions   2.49     6.50       103        66
//	                               252, 128 partitions   2.20     6.16        86        66
//	                               252, 256 partitions   2.13     6.69        86        66
//
// Redis keeps the numbers 0 to 127 in two bytes instead of three and compares
// them without a call. The sizes are such that logs of equal length just fit a
// size of the allocator's, where a few users more would take up to a quarter
// more. From there, on buckets of 252 and 128 partitions:
//
//	                                                    blast
//	as above                                             2.18
//	without reading the oldest entry                     2.13    (not kept: logs would only grow)
//	without PEXPIRE                                      2.15    (not kept)
//	without looking for the token                        2.16    (not kept)
//	reads only: HMGET, no judging                        0.70
//	reads and judges, writes nothing                     1.98    the interpreter is the cost, not Redis
//	compares the upper three bytes of times first        2.14
//	and settles two rules without a function call        1.82
//
// And at last, on a quieter machine, with the population in no cache:
//
//	                                                    blast   random   one in 27   every id
//	calls of up to 256 users, buckets of  94             2.37     4.94       113        67
//	                                     126             2.14     5.06       102        66
//	                                     158             2.09     4.99        95        66
//	                                     190             1.90     4.93        91        65
//	                                     252             1.80     5.37        85        66
//	calls of up to 512 users, and no look at the group
//	where there is only one, buckets of  190             1.73     4.59        92        65
//	                                     252             1.61     5.18        85        66
//
// In all of these, the whole audience got the same five blasts: every log is the
// same text. Where users have pasts of their own, Redis' interpreter makes new
// strings, and hashes every byte of each: 60 bytes cost 0.3 to 0.4 µs with their
// share of the garbage collection. Calls of 10,000:
//
//	                                              same past       no two pasts alike
//	                                            blast   random     blast   random
//	as above                                     1.95     4.60      2.35     4.8 to 5.2
//	neighbours with the same log judged once,
//	two times read at once where they are near   1.30     4.35      2.32     4.8 to 5.2
//	64 partitions: calls carry twice the users   1.16     3.89      2.12     4.9 to 5.2   in use
//	    buckets of 158                           1.22     3.80      2.08     4.8 to 5.2   (97 bytes one id in 27)
//	    buckets of 126                           1.36     3.71      2.39     4.9          (104 bytes)
//	    buckets of  94                           1.69     3.78      2.63     5.1          (111 bytes)
//
// and, on pasts of their own, with no gain that two runs agree on: the newest
// entry first, so that struct.pack makes the new log in one string instead of
// two; numbers from 128 as fields, all encoded alike; one table for all field
// names of a call; other settings of the garbage collector; no sweeps.
//
// The form of a call, in turns on the same logs (same past, blast; with calls of
// 10,000 and of 65,536):
//
//	as in use: fields packed in one argument, verdicts in one string    1.19   1.13
//	verdicts as an array, a reply for each user                         1.26   1.18
//	an argument for each field                                          1.25   1.17
//	HGET and HSET for each user instead of HMGET and HSET for a bucket  1.96   1.87
//	PEXPIRE always, nothing remembered of the TTL                       1.11   1.09
//
// The last is the better one only here, where every call has to set the TTL
// anyway, and would not tell when to sweep. Eight users of a bucket are read at
// once: 16 or 32 cost 2.19 and 2.16 instead of 2.24 µs where every id is asked
// and no two pasts are alike, and keep a script from ending early where logs
// are long.
//
// Where a blast's 2.1 µs go then: reading 0.87, judging 0.39, making the new
// log 0.42, writing 0.42. A third of a random user's is Redis looking for fields
// in a full bucket, twice, and waiting for memory while it does.
//
// A call of one user takes 15 % less of Redis since the writing stands where it
// is used and is no function with its dozen of upvalues, a group's table has room
// for two rules from the start, and only the names that are needed are made.
//
// One user a call, 64 callers, calls a second: four pipelines a node at once
// 42,000, two 60,000, one 64,000; two are kept, so that one slow answer does
// not hold up all. Ordering a random batch: sorting each partition 212 ns a
// user, radix 39.
package redisstore
