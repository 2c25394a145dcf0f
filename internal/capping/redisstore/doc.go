// Package redisstore keeps users' logs in Redis: in a Redis Cluster, or on one server, also behind Redis Sentinel.
// Only this package and the packages below it import the Redis client. docs/design/redisstore.md has the details of
// loss detection and the reason for an own cluster client.
//
// # The path of a batch
//
//	Store.Filter(batch)                                                  filter.go
//	  │  settings that instances share: the retention of sends           fleet.go
//	  ▼
//	script.Plan      users by partition, then by bucket                  script/plan.go
//	  ▼
//	dispatch.Run     commands of up to 512 users of one partition;       dispatch/run.go
//	  │              up to 64 in flight on every node                    dispatch/front.go
//	  │  which node holds the partition, and is it trusted?              topology
//	  ▼
//	dispatch.sender  one queue for each node, two connections, all runs  dispatch/sender.go
//	  │
//	  │  one pipeline:  EVALSHA filter.lua …   one for each command      script/contract.go
//	  │                 PEXPIRE sentinel key   was the server emptied?   topology/signs.go
//	  │                                        has it restarted?         topology/belief.go
//	  │                 WAIT n                 do n replicas have it?    topology/replicas.go
//	  │                 ROLE                   did the replicas change?
//	  ▼
//	Redis            filter.lua: HMGET, judge, HSET, bucket by bucket    script/filter.lua
//	  │
//	  ▼
//	Run.settle       reply by reply: accept it, retry the command,       dispatch/settle.go
//	  │              send it to another node, or give up                 fault
//	  ▼
//	verdicts         a user without one is Unavailable
//
// # Keyspace
//
// The keyspace of dense ids: a bucket is a hash of 190 neighbouring user ids. A field's name is the id's place in the
// bucket, in decimal, and its value is the user's log (see capping.Log). A partition is every 64th bucket. All keys
// of a partition share a hash tag, and therefore a slot. Every key has a TTL, which the next write to the key extends.
//
//	fc:{53t}:2rk             bucket 3584 (base 36) of partition 0: users 680,960 to 681,149
//	fc:{53t}:m:…             the id of a message whose token falls on the partition, or 0xFF, namespace, 0xFF, id
//	fc:{53t}:c:…             how many sends of a message were recorded and released in this partition
//	fc:{53t}:a:…             answers about a message whose text is in the partition, and its title
//	fc:{53t}:a:index         the partition's messages by their last call or import
//	fc:{53t}:a:asked:17      those of 8 days, by the users in all their calls
//	fc:{53t}:-sign           the sentinel key: the latest time that the partition's server has shown
//	fc:{53t}:-mark           the mark: the same time, times of partitions on another master, when a loss was accepted
//	fc:{53t}:-promises       a copy of the ledger of broken promises, in four partitions
//	fc:{53t}:rate:…          the shared rate budget of a client
//	fc:{53t}:-live           the log of live changes to sets, for the partition's users
//	fc:{…}:p:carrier         the log of a pacer; fc:{…}:p:campaign:0a1b… is the log of a message
//	fc:{…}:pf:campaign       the time until which the pacer's logs were forgotten
//	fc:{…}:pq:…              the grant of a request
//	fc:{…}:pl:lease-ends     the ends of the leases of requests; fc:{…}:pl:lease-calls has their calls
//	fc:{…}:pn:records        how many requests and logs of messages exist, by client and by expiry
//	fc:{format}              the format marker; :store, :retentions, :channels and :instances beside it are shared
//
// The keyspace of other ids, which have 64-bit images: the lower 6 bits of an image choose the partition, and its upper
// bits the bucket. Their number, the depth, is chosen when the store is made, so that a bucket holds about 60 users. A
// field's name is the bits between as raw bytes: 6 of them, and 7 with a depth below 10. Every other key is the same.
//
// # Formats
//
// The format marker names the version of the stored format, the least version that a program must know to use it, and
// the keyspace. This program reads the versions 1 to 3 of stores with dense ids, which have the same logs of users
// (script/format.go), and version 4 of stores with other ids:
//
//	1  capper log 1 bucket 190 partitions 64 epoch 2024-01-01
//	2  capper log 2 least 2 bucket 190 partitions 64 epoch 2024-01-01
//	3  capper log 3 least 3 bucket 190 partitions 64 epoch 2024-01-01
//	4  capper log 4 least 4 ids uuid check 1a2b3c4d depth 16 partitions 64 epoch 2024-01-01
//
// A store belongs to its kind of ids and to the key that makes images, of which the marker holds a check. A start with
// others returns an error and writes nothing.
//
// A store moves to the newest format in a heartbeat, after every instance of the last half minute has reported that it
// reads the format. While one instance has an older version, a downgrade therefore stays possible. After the move a
// start of an older version returns an error, and an older version that still runs stops at its next heartbeat.
//
// # Shared records
//
// Every five seconds each instance sends a heartbeat (beat.go, script/beat.lua). It renews the shared records, reports
// its configuration, and reads the retention in force, the numbers of channels, and the differences to other
// instances. The retention in force is the longest of any instance, so a policy that is gone for a moment erases
// nothing.
//
// # Counts by message
//
// The scripts count the sends that they record and remove, in the same step, in a hash of the message in each
// partition. While a slot is being moved, a script reaches one key only. The run then splits a command into commands
// of one bucket, which count nothing, and first marks the message's counts in this partition as lower bounds
// (script/atleast.lua).
//
// # Live changes
//
// A call that changes a set appends a record to the log of each partition with changed users (live.go,
// script/live.lua). Every instance reads the logs each second (liverenew.go) and keeps the changes in live.Lists.
// filter.lua compares the version of the partition's log with the version that the caller knows, and decides nobody
// when they differ. Before bare commands, the run reads the version with a separate command. Many records are replaced
// by few packed ones (livepack.go). Changes are stored from format 3 on, because older programs would ignore them.
//
// # Promises
//
//   - The store returns Allowed or Replayed only after as many replicas as Config.ReplicaAcks requires have confirmed
//     the send: WAIT runs on the same connection, in the same pipeline.
//   - With too few replicas a user is Unavailable and never Allowed. Nothing lowers the required number.
//   - A command without a reply is retried. The token in the log shows that the send was already recorded.
//   - A script checks all its arguments before it writes. A full server and a wrong clock are rejected before the
//     first write. A call that arrives later than the clock tolerance is rejected too.
//   - A change to a set counts as stored when the replicas have confirmed its record. No instance then decides a later
//     call without the change. A record that cannot be decoded makes the users of its partition unavailable.
//   - A partition that may have lost logs is quarantined: its users are Unavailable until an operator accepts the
//     loss.
//   - A send is lost when every copy of its shard is lost. Redis syncs its append-only file every second, so a master
//     that is killed during a slow sync and restarts before a failover may lose its newest sends. The setting
//     "appendfsync always" closes that gap.
package redisstore
