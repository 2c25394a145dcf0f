// Package pacing decides how fast sends may start. Package pacing grants permits to start sends, so that all senders
// together stay within the rates and limits of configured pacers.
//
// # Vocabulary
//
// A permit is the right to start one send at the permit's slot or later. A slot is an instant, in microseconds. A pacer
// is a rate limiter for sends: its limits allow at most Max slots in every window [t, t+Window), for every t. A rate is
// a limit of one slot per interval. The log of a pacer is the list of the slots that the pacer has granted, newest
// last. A pacer per message has a separate log for each message. A target is a log together with the limits that apply
// to it. An Ask is a request to a store for permits that several targets must grant together. A grant holds the permits
// that all targets of an Ask have granted in one atomic step.
//
// # Flow
//
//	Pacers.Take:   names → limits of each (Policy) → Store: place and record → grant
//	Pacers.Return: request → Store: remove slots from the request and from the logs → returned permits
//
// All pacers that one call names must be in the same group, because one atomic step needs all their logs in one place.
// A store may keep different groups in different places, such as Redis nodes, so each group has separate request ids.
//
// The function Place finds the slots of permits and adds them to the logs, without a clock or I/O. A store finds the
// slots and stores them in one atomic step. Package redisstore does this in a Lua script, and a differential test
// compares the script with Place.
//
// # Rules for every slot
//
//   - The next permit of an Ask gets the first slot, now or later, at which every limit of every target allows one more
//     permit. No window that contains this slot may have more than Max slots, even if some of them are later than the
//     new slot.
//   - A log keeps two kinds of slots: the slots in the line, and the slots ahead. If the limits of the target itself
//     allowed no earlier slot, the slot is in the line. No later permit gets a slot before a slot in the line. If each
//     Ask has only one target, this target grants its slots in order.
//   - A slot that is late only because of another target of the same Ask is a slot ahead of its target's line: this
//     target still has free slots before it, which later permits can get. A slot ahead joins the line when the present
//     time, the line, or the next slot under the target's own limits is later than it.
//   - If another target delays a permit by less than one interval of this target's rate, no other permit fits before
//     the slot. The slot is then in the line of this target.
//   - At a target with a rate, Place delays a slot ahead until it is a whole number of the rate's intervals after the
//     slot before it. Place delays the slot only if all limits allow the delay. The delay must also be small for every
//     target whose line contains the slot. A delay is small for a target if it is at most 1/20 of each window. A delay
//     is also small for a rate if the last 19 distances between its slots are together at most 20 intervals. Place
//     delays a slot only once, for the first such target and limit.
//   - The interval of a rate is rounded up to whole microseconds.
//   - Place adds permits one by one until the Ask has all its permits, or until the next slot is later than the Ask
//     allows. Refused permits leave no trace in the logs. The slots of a grant are in order: no permit gets a slot
//     before the earlier permits of the same Ask.
//   - While the store remembers a request, a repeated request of the same client gets the same slots again, and takes
//     no further permits.
//   - If a call asks the store in several steps, the store remembers the grant of each step, and that of the first step
//     longest. A repeated call gets the grants of the steps up to the first step that the store does not remember. The
//     repeated call marks the request as ended at that step, so that a delayed step of the first call gets no permits.
//   - No call gets a slot further in the future than the wait that the call allows, or than the LongestWait of one of
//     its pacers. A call that waits for a slow pacer therefore reserves slots of another pacer no further in the future
//     than that pacer allows.
//   - If the configuration of a limit changes, the new limit also counts slots that were granted before.
//
// # Returned permits
//
// A caller can return the last permits of a request, from a given number on, if their slots are in the future. The
// store removes the returned permits from the remembered request and from the log of each target in one atomic step. No
// permit is returned twice, because a repeated request has only the remaining permits. Limits do not count returned
// slots. From the first returned slot on, the remaining slots of the log become slots ahead, so that later permits can
// get the freed slots before them.
//
// Some returned slots cannot be removed from a log, and limits count these slots until their windows pass. A return of
// permits leaves at most MostReturned strands (series of slots at equal distances) of slots ahead in a log. If a rate
// fills one window of a limit after the other, the first slots of all windows are one strand, the second ones another.
// If a return would need more than MostReturned strands, or if more than MostApart runs follow the first returned slot,
// earlier slots stay in the line: later permits then do not get the freed slots. A log with more than MostRuns/2 runs
// drops slots that no limit counts any more, even future ones, and returns of dropped slots free nothing. A slot with
// several permits may contain permits that Merge has moved there from earlier slots. A slot with several permits
// therefore stays in the line unless the limits are Exact. After a return, limits may again count old slots that the
// log has dropped. Limits then count such dropped slots at the time of the oldest slot in the log, which is at least as
// late as the dropped slots. If an operator forgot a pacer after the request, a return must not remove slots from the
// pacer's new log, even if they are at the same instants. The store knows only the earliest possible time of a request:
// its newest slot less its longest wait.
//
// If the call belongs to a share (reserved part of a pacer), a return also removes slots from the logs of shares, but
// only at pacers with a rate. Every return also removes slots from the far logs (see below) of pacers with a rate. At a
// pacer without a rate, the log of another share may have slots of other calls at the same instant. The logs of shares
// at such a pacer therefore count returned slots until these slots pass.
//
// Whoever knows the request id may return permits with future slots, because a sender that waits for its slots has not
// used these permits yet.
//
// # Leases
//
// A sender that crashes cannot return its permits, and without a lease these permits count until their slots pass. When
// the lease of a call ends, the service itself returns the call's permits with future slots. Each time the sender
// repeats the call, the service extends the lease.
//
//   - A sender may use a permit only if its slot is at most one lease duration after the sender sent its latest
//     answered call. The store starts the lease after the sender sent the call. The service therefore never returns a
//     permit that the sender may use.
//   - The store keeps, for each lease, the call and the time at which the lease ends. Every second, each instance of
//     the service lists the ended leases, the newest first. The instance then returns the permits of one lease after
//     the other, and removes the leases. Two instances may return the permits of the same lease at once, because the
//     store returns each permit only once. Newest leases come first because removing the latest slots of a log leaves
//     no gap, and a log can have only some gaps.
//   - If the sender closes its connection during a call with a lease, the call goes on until its deadline. The permits
//     that the call may have taken therefore get their lease.
//   - The store never extends a lease that has ended, because another instance may be returning its permits. If a
//     sender repeats a call whose lease has ended, the service first returns the permits with future slots, and then
//     answers with the remaining permits.
//   - A call begins or extends its lease after the call has taken the permits. If a repeated call has taken permits but
//     not yet extended its lease, an earlier lease may have ended in between. A repeated call therefore asks the store
//     for its permits again after it has extended the lease.
//   - If the permits of an ended lease cannot be returned because the policy in force lacks a pacer, the store keeps
//     the lease for a minute. Another instance may have a newer policy with this pacer.
//
// # Targets that share
//
// A call for permits of a slow and a fast target wastes no slots of the fast target. Calls for the fast target alone
// get the free slots between the slots that the other call reserved. Each slot that the call reserved at the fast
// target delays one other permit there by less than one interval. If calls ask for more permits than a target allows,
// they get the target's slots in order of arrival.
//
// Permits of two targets with rates need slots that are whole intervals apart at both targets. Let s be the interval of
// the slow target, measured in intervals of the fast target, and let f be the fractional part of s. Both targets (the
// fast one and the slow one) can grant 95 % of their rates if s ≥ 19·f·(1-f). If s < 19·f·(1-f), no algorithm can reach
// 95 % of both rates. If two slots of the slow target are d fast intervals apart, the fast target has at most d slots,
// rounded down, in that time. With f between 0 and 1, the condition s ≥ 19·f·(1-f) holds for s ≥ 4.75 and for every
// whole number s. With rates of 100/s and 250/s, s is 2.5: the slow target then grants 95 % of its rate, and the fast
// target 86 %. The test TestASharedPacerGivesOutItsRate measures how much of its rate each target grants.
//
// # Shares
//
// A share reserves a percentage of a pacer's slots for the calls that name the share. A call belongs to at most one
// share. The rest of a pacer is for calls without a share, and for permits that calls of a share take beyond the
// reserved part. In addition to the log of the whole pacer, the store keeps a log for each share and a log for the rest
// of the pacer. The logs of shares and of the rest are ordinary targets, so the rules for targets determine every slot.
//
//   - A share's part of a limit is the share's percentage of Max, rounded up. A rate of one permit per interval is
//     divided like a limit of n permits in n intervals. These n intervals are called the period of the rate. The number
//     n is the smallest for which each share gets a whole number of intervals: at least its percentage of n, and at
//     most one percentage point more. Shares with less than 100 % together leave at least one interval. The number of
//     intervals in a period is multiplied until the period is at least 50 ms. For example, n is 15 for a share of 20 %
//     of the rate 250/s.
//   - A call without a share needs permits of two targets: the whole pacer, and the rest of the pacer. The limits of
//     the rest are the pacer's limits less the parts of all shares, but at least 1. While calls do not use a share,
//     calls without a share also get its part of a rate and of a limit with a window up to SoonWindow. Limits with
//     longer windows always reserve the parts of shares. If other calls took reserved permits from the limit of a day,
//     the reserved permits would not come back in time. If no share has a reserved part at present, a call without a
//     share asks for the whole pacer alone, as if the pacer had no shares. If the shares that have a reserved part at
//     present have 100 % together, capper refuses the call, unless the store remembers its request.
//   - At a pacer with shares, a call without a share gets only slots within RestAhead from now, or within two intervals
//     of a slow rate.
//   - A call of a share asks the store in up to three steps, each for the permits that the call still lacks. The first
//     step asks for permits of the whole pacer and of the share's part, with slots within a period of the rate. The
//     second step asks for permits of the whole pacer and of the rest of the pacer, like a call without a share. The
//     third step asks for permits of the share's part again, within the whole wait of the call.
//   - A share is in demand for the time KeptFor after each call of the share, even if the call was refused. An instance
//     knows of its own calls at once, and learns of calls at other instances after at most readEvery. Instances tell
//     each other through a log in the store that has no other purpose, the mark of the share. In each second with a
//     call of the share, the instance takes a permit of the mark. In each readEvery with a call without a share, the
//     instance reads the marks of the pacer's shares.
//
// The first call of an idle share therefore waits until slots within RestAhead, and the longest window up to
// SoonWindow, have passed. After that, calls of the share get the share's part in each period or window, even if other
// calls ask for more than the pacer allows. While calls of a share take less than its part, nobody gets the remainder
// of the part. RunShares in package pacingtest has measured figures on shares.
//
// # Calls without a wait
//
// A call whose MaxWait is 0 can get only slots of the present moment. If calls without a wait could not reserve a slot,
// every slot that becomes free would be lost until the next call comes. A call for a slow pacer and a busy fast pacer
// would then get a permit only if no other call took the fast pacer's slot first. A call that gets no permit at once
// therefore takes the next slot, if that slot is near. The service delays the answer to such a call until the slot
// comes, so that the answer has no waits.
//
//   - The answer to a call for one pacer with a rate is delayed by at most an interval, and by at most 5 ms. The answer
//     to a call for several pacers is delayed by at most 5 ms plus an interval of each pacer except the slowest, and by
//     at most HeldFor. For a pacer without a rate, the interval is the shortest window divided by its Max. No answer is
//     delayed longer than the LongestWait of one of the call's pacers.
//   - A call for several pacers therefore reserves slots further ahead than calls for only one of these pacers, and
//     gets the next slot of the slowest pacer.
//   - The answer to a call for several permits is delayed only if the call gets no permit at once. The call then gets
//     the permits up to the next slot, and all of these permits start when the answer comes.
//   - The answer to a refused call says after which delay a retry would get a slot.
//
// TestCallsWithoutAWaitShare measures that each pacer grants its rate.
//
// # Waits of different length
//
// Calls with a longer wait could reserve all slots of a pacer up to this wait, so that calls with a shorter wait would
// get nothing. Calls with longer waits therefore leave some slots free. The waits of calls form classes, which begin at
// 0, 500 ms, 1 s, 2 s, 5 s, 10 s, 30 s and 2 m. The reach of a call is the lower bound of the class to which the call's
// wait belongs.
//
//   - A call puts its reach (wait class) in demand at a pacer whose newest slot is later than the call may wait, and
//     more than 250 ms ahead. A call with the reach 0 puts its reach in demand only if it gets fewer permits than it
//     wants. A reach stays in demand for the time KeptFor. Instances tell each other which reaches are in demand in the
//     same way as with shares, through marks in the store. A call reads no marks of a pacer whose newest slot, as the
//     instance last saw it, is less than LeastReach ahead.
//   - While calls with a shorter reach are in demand, a call asks the store in two steps. The first step asks for slots
//     that are at most half of the shorter reach and at most LeastReach in the future. The second step asks for permits
//     of the pacer and of its far log, within the whole wait of the call. The far log is an additional target, whose
//     limits are three quarters of the pacer's limits. If several shorter reaches are in demand, the shortest counts,
//     and the call takes no slot later than the second shortest.
//   - For the far log, a pacer's rate becomes a limit of three quarters of n permits in n intervals, rounded down and
//     at least 1. n is the number of intervals in half of the shorter reach, at least 2. For the reach 0, n is at least
//     48, and n intervals take at least 100 ms. A call without a wait rarely finds a slot at the very moment, so up to
//     one interval of every n is lost.
//   - The far log grants slots at most 64 of its shortest windows ahead, because each of these windows needs a strand
//     in the pacer's log.
//
// Calls with shorter waits therefore get at least a quarter of the slots, as soon as the slots that were granted before
// have passed. Calls with longer waits can take free slots that calls with shorter waits leave, if they ask when such a
// slot is at most half of the shorter reach away. If a caller reserves slots far ahead and does not ask again, a
// quarter of the slots may stay unused. While calls without a wait are in demand, calls with longer waits cannot use
// that quarter either. At pacers with shares, and at pacers per message or key, calls with longer waits leave no slots
// free. At a pacer with shares, or with a log per message or key, the shares, messages or keys already separate the
// callers. RunWaits in package pacingtest has measured figures on waits.
//
// # The log
//
// A log stores its slots as runs. A run is a series of permits with a fixed number of permits at each slot and a fixed
// distance between slots. If a sender takes all permits of a pacer, the log has few runs, whatever Max is. If senders
// take single permits at arbitrary times, the log has one run for each permit. A log holds at most MostRuns runs.
//
// A log stores slots ahead as strands, at most MostAhead of them. A strand, like a run, is a series of slots at equal
// distances, but strands may overlap in time. If a log would need more strands than MostAhead, the slots up to the end
// of the strand that ends first move to the line. Later permits can then no longer get the free slots before the moved
// slots. A search for a free slot between slots ahead ends after MostLooks steps, or after more work than MostWork. The
// permit then gets a slot after all slots ahead. If a window contains more than MostWindows slots ahead, the limit
// counts all of them at once, as if they were in one window.
//
// The method Merge reduces the number of runs in a full log. Merge keeps the runs whose permits limits can still count.
// Merge moves permits only to the slot of a later permit, so that no limit is ever exceeded. Merge divides the permits
// of a log, in order, into groups, and moves the permits of a group to the latest slot of the group. A group has few
// permits compared with the smallest Max whose limit still counts them. After Merge, a limit behaves as if its Max were
// smaller, by less than one group.
//
// Groups of permits start at multiples of their size, counted from the first permit that the log ever had. The group
// size for a limit with a larger Max is a multiple of the group sizes for limits with a smaller Max. A second Merge
// therefore does not move the same permits again, and losses do not add up, unless the limits change.
//
// The number of permits that Merge costs a limit depends on how many limits the log has, without counting a rate:
//
//	limits of a log       1         2         3       4
//	loss is less than     1/2,200   1/1,100   1/740   1/560   of Max
//
// With up to four limits, a limit with a Max up to 560 loses no permits. A log with a single limit loses no permits up
// to a Max of 2,200. TestMeasuredLoss measures this loss. With 50,000 calls at irregular times in the longest window,
// at most 0.056 % of the permits were lost.
package pacing
