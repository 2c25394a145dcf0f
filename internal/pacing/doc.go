// Package pacing limits the speed at which sends start. Package pacing grants permits to start sends, so that all
// senders together stay within the rates and limits of configured pacers.
//
// # Vocabulary
//
// A permit is the right to start one send at the permit's slot or later. A slot is an instant, in microseconds. A pacer
// is a rate limiter for the starts of sends. Each limit of a pacer allows at most Max slots in every window [t,
// t+Window), for every t. A rate is a limit of one slot per interval. The log of a pacer is the list of the slots that
// the pacer has granted, newest last. A pacer per message has a separate log for each message. A target is a log
// together with the limits that apply to the log. An Ask is a request to a store for permits that several targets must
// grant together. A grant holds the permits that all targets of an Ask have granted in one atomic step.
//
// # Flow
//
//	Pacers.Take:   names → limits of each (Policy) → Store: place and record → grant
//	Pacers.Return: request → Store: remove slots from the request and from the logs → returned permits
//
// All pacers that one call names must be in the same group, because one atomic step needs all their logs in one place.
// A store may keep different groups of pacers in different places, such as Redis nodes, so each group has separate
// request ids.
//
// The function Place finds the slots of permits and adds the slots to the logs. The function Place uses neither a clock
// nor I/O. A store finds and stores the slots of an Ask in one atomic step. Package redisstore finds slots in a Lua
// script, and a differential test compares the script with Place.
//
// # Rules for every slot
//
//   - The next permit of an Ask (request to the store) gets the first slot, now or later, at which every limit of every
//     target allows one more permit. No window that contains the new slot may have more than Max slots, even if some
//     slots of the window are later than the new slot.
//   - The log of a target has two kinds of slots: slots in the line and slots ahead. A slot is in the line if the
//     target's own limits allowed no earlier slot. No later permit of the target gets a slot before a slot in the line.
//     If each Ask names only one target, the target grants its slots in order.
//   - A slot ahead is a slot that is late only because of another target of the same Ask. Before a slot ahead, the
//     target still has free slots, which later permits can get. A slot ahead (slot with free slots before it) joins the
//     line as soon as the present time reaches the slot. A slot ahead also joins the line as soon as the newest slot in
//     the line, or the next slot under the target's own limits, reaches the slot.
//   - If another target delays a permit by less than one interval of this target's rate, no other permit fits before
//     the permit's slot. A slot before which no other permit fits is in the line: no later permit can get a slot before
//     it.
//   - At a target with a rate, Place delays a slot ahead until the distance from the target's previous slot is a whole
//     number of the rate's intervals. The function Place delays the slot only if all limits allow the later slot. The
//     delay must also be small for every target that gets the slot in its line. A delay is small for a target if the
//     delay is small for each of the target's limits. A delay is small for a limit if the delay is at most 1/20 of the
//     limit's window. For a rate, a delay is also small if the last 19 distances between slots together are at most 20
//     intervals. The last of these slots is the delayed slot. The function Place delays each slot at most once, for the
//     first target and limit at which a delay is possible.
//   - The interval of a rate is rounded up to whole microseconds.
//   - The function Place adds permits one by one until the Ask has all its permits, or until the next slot is later
//     than the Ask allows. Refused permits do not change the logs. The slots of a grant are in order: no permit gets a
//     slot before the earlier permits of the same Ask.
//   - While the store remembers a request, a repeated request of the same client gets the same slots again, and takes
//     no further permits.
//   - If a call asks the store in several steps, the store remembers the grant of each step. The store remembers the
//     grant of the first step for the longest time. A repeated call gets the grants of all steps before the first step
//     that the store does not remember. At the first step that the store does not remember, the repeated call marks the
//     request as ended. A delayed step of the original call therefore gets no permits.
//   - No call gets a slot further in the future than the call's own wait, or than the LongestWait of one of its pacers.
//     A call that waits for a slow pacer therefore reserves slots of another pacer no further ahead than the other
//     pacer's LongestWait.
//   - If the configuration of a limit changes, the new limit also counts slots that were granted before the change.
//
// # Returned permits
//
// A caller can return the permits of a request from a given number on, if the slots of these permits are in the future.
// In one atomic step, the store removes the returned permits from the remembered request and from the log of each
// target. No permit is returned twice, because the remembered request no longer contains the returned permits. Limits
// do not count returned slots. From the first returned slot on, the remaining slots of the log become slots ahead, so
// that later permits can get the freed slots before them.
//
// Some returned slots cannot be removed from a log, and limits count these slots until their windows pass. A return of
// permits creates slots ahead only up to MostReturned strands (series of slots at equal distances) in a log. Suppose
// that a rate fills one window of a limit after the other. The first slots of all windows then form one strand (series
// of slots), and the second slots another strand. If a return would need more than MostReturned strands (series of
// slots), earlier slots stay in the line (later permits get no slots before them). Later permits do not get freed slots
// that are before the newest slot in the line. Earlier slots also stay in the line (later permits get no slots before
// them) if more than MostApart runs follow the first returned slot. A log with more than MostRuns/2 runs drops slots
// that no limit counts any more, even future slots. If a log has dropped the slots of returned permits, the return
// frees no slots. If several permits of a log have the same slot, Merge may have moved some of these permits to this
// slot from earlier slots. If the limits are not Exact (Merge may move permits), a slot with several permits therefore
// stays in the line. After a return, limits may again count old slots that the log has dropped. Limits count dropped
// slots as if they were at the oldest slot in the log, because no dropped slot was later. If an operator reset a pacer
// after the request, a return of permits removes no slots from the pacer's new log. The new log may have slots of other
// calls at the same instants. The store knows only the earliest possible time of a request: the newest slot of the
// request minus the longest wait of the call.
//
// If the call belongs to a share (reserved part of a pacer), a return at pacers with a rate also removes slots from the
// logs of shares. At a pacer without a rate, the log of another share may have slots of other calls at the same
// instant. At a pacer without a rate, the logs of shares therefore count returned slots until these slots pass. At
// pacers with a rate, every return also removes slots from the far logs (see "Waits of different length").
//
// Every caller that knows the request id may return permits with future slots. A sender that waits for a slot has not
// used the slot's permit yet.
//
// # Leases
//
// A sender that crashes cannot return its permits. Without a lease, limits count the permits of a crashed sender until
// the slots of these permits pass. When the lease of a call ends, the service itself returns the call's permits with
// future slots. Each time the sender repeats the call, the service extends the lease.
//
//   - A sender may use a permit only if the permit's slot is at most one lease duration after the sender's latest
//     answered call. For the sender, the lease duration begins when it sends the call, and the store starts the lease
//     later. The service therefore never returns a permit that the sender may use.
//   - For each lease, the store keeps the permit request and the time at which the lease ends. Every second, each
//     instance of the service lists the ended leases, the newest first. The instance returns the permits of one ended
//     lease after the other, and removes these leases. Two instances may return the permits of the same lease at the
//     same time, because the store returns each permit only once. The instance begins with the newest lease, because
//     removing the latest slots of a log leaves no gap, and a log can have only a few gaps.
//   - If the sender closes its connection during a call with a lease, the call goes on until its deadline. Permits that
//     the call may have taken therefore get a lease.
//   - The store never extends a lease that has ended, because another instance may be returning the permits of the
//     lease. If a sender repeats a call whose lease has ended, the service first returns the permits with future slots,
//     and then responds with the remaining permits.
//   - A call begins or extends its lease after the call has taken the permits. Before a repeated call extends an
//     earlier lease, this lease may already have ended. A repeated call therefore asks the store for its permits again
//     after the call has extended the lease.
//   - If the service cannot return the permits of an ended lease, the store keeps the lease for a minute. The return
//     fails, for example, if the policy in force lacks all pacers of the call, but another instance has a newer policy
//     with these pacers.
//
// # Targets that share
//
// A call for permits of a slow and a fast target wastes no slots of the fast target. Calls for only the fast target get
// the free slots between the slots that the call for both targets reserved. Each slot that the call for both targets
// reserved at the fast target delays another permit of this target by less than one interval. If calls ask for more
// permits than a target allows, the calls get the target's slots in order of arrival.
//
// If two targets with rates grant permits together, the distances between slots must be whole intervals of both
// targets. Let s be the interval of the slow target, measured in intervals of the fast target, and let f be the
// fractional part of s. If s ≥ 19·f·(1-f), both targets (the fast one and the slow one) can grant 95 % of their rates.
// If s < 19·f·(1-f), no algorithm can reach 95 % of both rates. Between two slots of the slow target that are d fast
// intervals apart, the fast target has at most d slots, rounded down. With f between 0 and 1, the condition s ≥
// 19·f·(1-f) holds for s ≥ 4.75 and for every whole number s. With rates of 100/s and 250/s, s is 2.5. With this s, the
// slow target grants 95 % of its rate, and the fast target grants 86 %. The test TestASharedPacerGivesOutItsRate
// measures, for each target, the part of the rate that the target grants.
//
// # Shares
//
// A share reserves a percentage of a pacer's slots for the calls that name the share. A call belongs to at most one
// share. The rest of a pacer is for calls without a share. If a call of a share needs more permits than the share's
// reserved part has, it can also take permits of the rest. In addition to the log of the whole pacer, the store keeps a
// log for each share and a log for the rest of the pacer. The logs of shares and of the rest are ordinary targets, so
// the rules for targets determine every slot.
//
//   - A share's part of a limit is the share's percentage of Max, rounded up. A rate of one permit per interval is
//     divided like a limit of n permits in n intervals. The n intervals of a divided rate together are called the
//     period of the rate. The number n is the smallest number for which each share gets a whole number of intervals.
//     Each share gets at least its percentage of n intervals, and at most one percentage point more. If all shares
//     together have less than 100 %, at least one interval is left for other calls. If the n intervals last less than
//     50 ms, n is multiplied by the smallest whole number that makes the period at least 50 ms long. For example, n is
//     15 for a share of 20 % of the rate 250/s.
//   - A call without a share needs permits of two targets: the whole pacer, and the rest of the pacer. The limits of
//     the rest are the pacer's limits minus the parts of all shares, but at least 1. While no call uses a share, calls
//     without a share also get its part of a rate, and its part of limits with windows up to SoonWindow. In a limit
//     with a longer window, the part of each share stays reserved even while no call uses the share. For example, if
//     other calls took reserved permits from the limit of a day, these permits would come back too late for the share.
//     If no share has a reserved part at present, a call without a share asks only for permits of the whole pacer. If
//     the shares that have a reserved part at present make up 100 % together, capper refuses calls without a share. The
//     only exceptions are calls whose request the store remembers.
//   - At a pacer with shares, a call without a share gets only slots within RestAhead from now, or within two intervals
//     of a slow rate.
//   - A call of a share asks the store in up to three steps, each for the permits that the call still lacks. The first
//     step asks for permits of the whole pacer and of the share's part. The slots must be within a period of the rate,
//     or within 50 ms at a pacer without a rate. The second step asks for permits of the whole pacer and of the rest of
//     the pacer, like a call without a share. The third step asks for permits of the share's part again, within the
//     whole wait of the call.
//   - A share is in demand (in use) for the time KeptFor after each call of the share, even if the call was refused. An
//     instance of the service knows of its own calls immediately, and learns of calls at other instances within the
//     time readEvery. To tell other instances that a share is in demand, an instance takes a permit from the mark of
//     the share. A mark is a log without any other purpose. In each second in which it gets a call of the share, the
//     instance takes one permit from the mark. Calls without a share, and all calls at pacers with several shares, make
//     the instance read the marks of the pacer's shares, at most once every readEvery.
//
// The first call of an idle share therefore waits until slots granted within RestAhead have passed. It also waits until
// the longest of the windows up to SoonWindow has passed. After this wait, calls of the share get the share's part in
// each period or window, even if other calls ask for more than the pacer allows. While calls of a share take less than
// the share's part, nobody gets the remainder of the part. The function RunShares in package pacingtest has measured
// figures on shares.
//
// # Calls without a wait
//
// A call whose MaxWait is 0 (a call without a wait) can get only slots of the present moment. If calls without a wait
// could not reserve a slot, every slot that becomes free would stay unused until the next call comes. A call for a slow
// pacer and a busy fast pacer also needs a reserved slot, because other calls may otherwise take the fast pacer's slot
// first. A call without a wait that gets no permit immediately therefore takes the next slot, if that slot is near. The
// service delays the response to a call without a wait until the reserved slot comes, so that the response has no
// waits.
//
//   - If a call is for one pacer with a rate, the service delays the response by at most one interval, and by at most 5
//     ms. If a call is for several pacers, the maximum delay is 5 ms plus one interval of each pacer except the
//     slowest, but at most HeldFor. For a pacer without a rate, the interval is the shortest window divided by its Max.
//     The service delays no response longer than the LongestWait of one of the call's pacers.
//   - A call without a wait for several pacers therefore reserves slots further ahead than a call for one of these
//     pacers. The call for several pacers gets the next slot of the slowest pacer.
//   - The service delays the response to a call for several permits only if the call gets no permit immediately. A
//     delayed call gets the permits up to the next slot, and the sends of all these permits may start when the response
//     comes.
//   - The response to a refused call gives the delay after which a retry would get a slot.
//
// The test TestCallsWithoutAWaitShare measures that each pacer grants its rate.
//
// # Waits of different length
//
// Calls with a longer wait could reserve all slots of a pacer up to this wait, so that calls with a shorter wait would
// get nothing. Calls with longer waits therefore leave some slots free. The waits of calls form classes, which begin at
// 0, 500 ms, 1 s, 2 s, 5 s, 10 s, 30 s and 2 m. The reach (protected wait) of a call is the lower bound of the class
// that contains the call's wait.
//
//   - A call puts its reach (lower bound of its wait class) in demand at a pacer under two conditions: the pacer's
//     newest slot is later than the call may wait, and this slot is more than 250 ms in the future. A call with the
//     reach 0 puts this reach in demand only if the call gets fewer permits than it wants. A reach stays in demand for
//     the time KeptFor. Through marks in the store, instances of the service tell each other about reaches in demand,
//     as they do about shares in demand. If the newest slot that an instance has seen at a pacer is at most LeastReach
//     in the future, the instance reads no marks of the pacer.
//   - While calls with a shorter reach are in demand, a call asks the store in two steps. The first step asks for slots
//     that are at most half of the shorter reach and at most LeastReach in the future. The second step asks for permits
//     of the pacer and of the pacer's far log, within the whole wait of the call. The far log is an additional target
//     for late slots, and its limits are three quarters of the pacer's limits. If several shorter reaches are in
//     demand, the call leaves slots free for the shortest, and takes no slot later than the second shortest.
//   - For the far log, a pacer's rate becomes a limit per n intervals: three quarters of n permits, rounded down, but
//     at least 1. If the shorter reach (lower bound of the wait class in demand) is above 0, this n is the number of
//     whole intervals in half of the reach, at least 2. If the shorter reach is 0, this n is the number of whole
//     intervals in 100 ms, at least 48. A call without a wait rarely comes exactly at a free slot, so up to one of n
//     intervals is lost.
//   - The far log grants slots up to 64 of its shortest windows in the future, or up to the shorter reach if this is
//     later. Each window needs a strand (series of slots) in the pacer's log, so more windows would need too many
//     strands.
//
// Calls with shorter waits therefore get at least a quarter of the slots, as soon as the slots that were granted before
// have passed. Calls with longer waits can take free slots that calls with shorter waits leave, if the slot is at most
// half of the shorter reach in the future. If a caller reserves slots far ahead and does not ask again, a quarter of
// the slots may stay unused. While calls without a wait are in demand, calls with longer waits cannot use the unused
// quarter of the slots either. At a pacer with shares, or with a log per message or key, calls with longer waits leave
// no slots free. At such a pacer, the shares, messages or keys already separate the callers. The function RunWaits in
// package pacingtest has measured figures on waits.
//
// # The log
//
// A log stores its slots as runs. A run is a series of permits with a fixed number of permits at each slot and a fixed
// distance between slots. If a sender takes all permits of a pacer, the log has few runs, for every value of Max. If
// senders take single permits at arbitrary times, the log has one run for each permit. A log holds at most MostRuns
// runs.
//
// A log stores slots ahead as strands (series of slots), at most MostAhead of them. A strand, like a run, is a series
// of slots at equal distances, but strands may overlap in time. If a log would need more than MostAhead strands (series
// of slots), some slots move to the line: those up to the earliest end of a strand. Later permits cannot get the free
// slots before the moved slots. A search for a free slot between slots ahead (reserved slots) ends after MostLooks
// steps, or after more work than MostWork. If the search ends without a free slot, the permit gets a slot after all
// slots ahead. If a window contains more than MostWindows slots ahead, the limit counts all of them as if they were in
// one window.
//
// The method Merge reduces the number of runs in a full log. The method Merge keeps a run if a limit can still count
// permits of the run. The method Merge moves permits only to the slot of a later permit, so that no limit is ever
// exceeded. The method Merge divides the permits of a log, in order, into groups, and moves the permits of a group to
// the latest slot of the group. A group has few permits, compared with the smallest Max of the limits that still count
// these permits. After Merge, a limit may grant fewer permits than its Max, but the difference is less than one group.
//
// Groups of permits start at multiples of their size, counted from the first permit that the log ever had. The group
// size for a limit with a larger Max is a multiple of the group sizes for limits with a smaller Max. A second Merge
// therefore does not move the same permits again, and losses do not add up, unless the limits change.
//
// After Merge, each limit may grant some permits too few. The loss depends on the number of limits of the log, not
// counting a rate:
//
//	limits of a log       1         2         3       4
//	loss is less than     1/2,200   1/1,100   1/740   1/560   of Max
//
// With up to four limits, a limit with a Max up to 560 loses no permits. A log with a single limit loses no permits up
// to a Max of 2,200. The test TestMeasuredLoss measures this loss. With 50,000 calls at irregular times in the longest
// window, at most 0.056 % of the permits were lost.
package pacing
