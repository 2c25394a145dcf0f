// Package redisstore keeps users' logs in Redis: in a Redis Cluster or on a single server, with or without Redis
// Sentinel. Only this package and the packages below it import the Redis client. docs/design/redisstore.md explains how
// the store detects lost data, and why it has its own cluster client.
//
// # The path of a batch
//
//	Store.Filter(batch)                                                  filter.go
//	  │  settings shared by all instances: the retention of sends        fleet.go
//	  ▼
//	script.Plan      users by partition, then by bucket                  script/plan.go
//	  ▼
//	dispatch.Run     commands of up to 512 users of one partition;       dispatch/run.go
//	  │              up to 64 in flight to every node                    dispatch/front.go
//	  │  which node has the partition, and is its data complete?         topology
//	  ▼
//	dispatch.sender  one queue for each node, two connections, all runs  dispatch/sender.go
//	  │
//	  │  one pipeline:  EVALSHA filter.lua …   one for each command      script/contract.go
//	  │                 PEXPIRE sentinel key   was the server emptied?   topology/signs.go
//	  │                                        has it restarted?         topology/belief.go
//	  │                 WAIT n                 do n replicas confirm?    topology/replicas.go
//	  │                 ROLE                   did the replicas change?
//	  ▼
//	Redis            filter.lua: HMGET, judge, HSET, bucket by bucket    script/filter.lua
//	  │
//	  ▼
//	Run.settle       reply by reply: accept it, retry the command,       dispatch/settle.go
//	  │              send it to another node, or give up                 fault
//	  ▼
//	verdicts         a user without a verdict is Unavailable
//
// # Keyspace
//
// Dense ids are the numbers from 0 to 4294967295. In a store with dense ids, a bucket is a Redis hash with one field
// for each of 190 neighbouring user ids. The name of a user's field is the position of the user's id in the bucket, as
// a decimal number. The value of a user's field is the user's log, the list of recorded sends (see capping.Log). Each
// of the 64 partitions consists of every 64th bucket. All keys of a partition share a hash tag, and therefore a hash
// slot of the cluster. Every key has a TTL, which the next write to the key extends.
//
//	fc:{53t}:2rk             bucket 3584 (base 36) of partition 0: users 680,960 to 681,149
//	fc:{53t}:m:…             a message's text, in its token's partition: the id, or 0xFF, namespace, 0xFF, id
//	fc:{53t}:c:…             numbers of recorded and released sends of a message in this partition
//	fc:{53t}:a:…             decision counts and title of a message whose text is in the partition
//	fc:{53t}:a:index         an index of messages with counts, by the time of the last call or import
//	fc:{53t}:a:asked:17      an index of messages with the last call in one period, by number of users
//	fc:{53t}:-sign           the sentinel key: the latest time that the partition's server has shown
//	fc:{53t}:-mark           the mark: the same time, times of other partitions, time of an accepted loss
//	fc:{53t}:-promises       a copy of the ledger of broken promises, in four partitions
//	fc:{53t}:rate:…          the shared rate budget of a client
//	fc:{53t}:-live           the log of live changes to sets, for the partition's users
//	fc:{…}:p:carrier         the log of a pacer; fc:{…}:p:campaign:0a1b… is the log of a message
//	fc:{…}:pf:campaign       the time of the pacer's last reset
//	fc:{…}:pq:…              the grant of a permit request
//	fc:{…}:pl:lease-ends     end times of the leases of permit requests; fc:{…}:pl:lease-calls has the requests
//	fc:{…}:pn:records        numbers of stored permit requests and logs of messages, by client and expiry
//	fc:{format}              the format marker; :store, :retentions, :channels and :instances beside it are shared
//
// If user ids are not dense numbers, the keyspace uses id images (64-bit numbers that stand for the ids). For each
// user, the lower 6 bits of the id image choose the partition, and the upper bits choose the bucket. The depth of a
// store is the number of upper bits of an id image that choose the bucket. A new store gets a depth (number of bits
// that choose the bucket) at which a bucket holds about 60 users. In a store with id images, the name of a user's field
// consists of the remaining bits of the image: those that do not choose the partition or the bucket. The field name has
// 6 raw bytes, or 7 if the depth (number of bits that choose the bucket) is below 10. Stores with dense ids and stores
// with id images differ only in the keys and fields of buckets.
//
// # Formats
//
// The format marker is a Redis value that names the version of the stored format, and the keyspace. The marker also
// names the lowest format version that a program must know to use the store. In stores with dense ids, this program
// reads the format versions 1 to 3, whose users' logs have the same format (script/format.go). In stores with ids that
// are not dense, this program reads version 4:
//
//	1  capper log 1 bucket 190 partitions 64 epoch 2024-01-01
//	2  capper log 2 least 2 bucket 190 partitions 64 epoch 2024-01-01
//	3  capper log 3 least 3 bucket 190 partitions 64 epoch 2024-01-01
//	4  capper log 4 least 4 ids uuid check 1a2b3c4d depth 16 partitions 64 epoch 2024-01-01
//
// A store never changes its kind of ids or the key that makes id images. The format marker holds a check word for the
// kind of ids and the key of the id images. If the configuration has another kind of ids or another key than the store,
// the start returns an error and writes nothing.
//
// A heartbeat moves the store to the newest format after every instance of the last half minute has reported that it
// reads that format. As long as one instance has an older version of capper, the other instances can still be
// downgraded. When the store has been moved to the newest format, an older version of capper does not start any more. A
// running instance of an older version stops at its next heartbeat.
//
// # Shared records
//
// Every five seconds, each instance sends a heartbeat (beat.go, script/beat.lua). The heartbeat renews the records in
// Redis that all instances share, and reports the configuration of the instance. The reply to a heartbeat contains the
// retention in force (the time for which sends are kept), the numbers of the channels, and the differences between the
// instances. The retention in force is the longest retention of any instance. If a policy is missing for a moment, the
// sends that its limits count therefore stay in the store.
//
// # Counts by message
//
// A Lua script counts the sends that it records or removes in the same atomic step. The counts of sends are in one
// Redis hash for each message and partition. While the cluster is moving a hash slot, a script can use only one Redis
// key of this slot. While a hash slot is moving, package dispatch splits a command into commands of one bucket each.
// Commands of one bucket count no sends. Before package dispatch sends commands of one bucket, it marks the message's
// counts in this partition as lower bounds (script/atleast.lua).
//
// # Live changes
//
// A live change is a change of a set by an API call. A call that changes a set appends a record to the live change log
// of each partition with changed users (live.go, script/live.lua). Every instance reads the live change logs each
// second (liverenew.go) and keeps the changes in live.Lists. The script filter.lua compares the stored version of the
// partition's live change log with the caller's version. If the two versions of the live change log differ, filter.lua
// decides about no user. A command of one bucket cannot read the live change log. Before the command of one bucket, the
// run therefore reads the version of the live change log with a separate command. From time to time, instances replace
// many records of a live change log by few packed records (livepack.go). Changes to sets are allowed only from format 3
// on, because older programs would ignore the changes.
//
// # Promises
//
//   - The store returns Allowed or Replayed only after as many replicas as Config.ReplicaAcks requires have confirmed
//     the send. The WAIT command, which waits for replicas, runs on the same connection and in the same pipeline as the
//     script.
//   - If too few replicas confirm a send, the user is Unavailable and never Allowed. The store never accepts fewer
//     replicas than Config.ReplicaAcks requires.
//   - The store retries a command that has no reply. If an earlier attempt recorded the send, the script finds the
//     token of the message (hash of its id) in the user's log.
//   - A script checks all its arguments before it writes. If the server is full or its clock is wrong, a script rejects
//     the call before it writes anything. A script also rejects a call that arrives later than the clock tolerance
//     allows.
//   - A change of a set by an API call is stored when the replicas have confirmed the record of the change. Every later
//     decision of any instance takes the stored change into account. If a record of a live change cannot be decoded,
//     the users of its partition are Unavailable.
//   - A partition that may have lost users' logs is in quarantine: the users of the partition are Unavailable until an
//     operator accepts the loss.
//   - A send is lost if the master and all replicas of its shard are lost. Redis syncs its append-only file every
//     second. If a master is killed during a slow sync and restarts before a failover, the newest sends may be lost.
//     The Redis setting "appendfsync always" prevents the loss of sends during a slow sync.
package redisstore
