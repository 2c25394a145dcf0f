// Package pacing decides how fast allowed sends may start. It grants permits at the rates and limits of pacers.
//
// # Vocabulary
//
// A permit is the right to start one send at its slot or later. A slot is an instant in microseconds. A
// pacer has limits: at most Max slots in every window [t, t+Window), for every t. A rate is a limit of one
// slot per interval. The log of a pacer holds its slots, newest last. A pacer per message has one log for
// each message. A target is a log with its limits. An Ask is a request for permits of several targets at once. A
// grant holds the permits that all targets give, taken in one atomic step.
//
// # Flow
//
//	Pacers.Take:   names → limits of each (Policy) → Store: place and record → grant
//	Pacers.Return: request → Store: remove from the request and from the logs → permits that went back
//
// The pacers of a call are of one group, because one atomic step needs all their logs in one place. A store may keep
// groups in different places, so each group has separate request ids.
//
// Place puts permits into logs as a pure function: no clock, no I/O. Stores place and record in one atomic
// step. Package redisstore places in a script, and a differential test compares that script with Place.
//
// # Rules for every slot
//
//   - The slot of the next permit is the first instant, now or later, at which every limit of every target
//     allows one more: no window that holds the slot has more than Max slots, also with slots later than it.
//   - A log has a line of slots. A slot that its target could not have given earlier stands in the line, and no
//     later permit gets a slot before it. So a target that is asked alone gives out its slots in order.
//   - A slot that only the other targets of a call put off stands ahead: later permits get the room before it.
//     Slots ahead join the line when now, the line or the next slot of the target's own limits passes them.
//   - A slot less than an interval of a rate after that next slot leaves no room, so it stands in the line.
//   - A slot that stands ahead at a target with a rate moves up to a whole number of intervals from the slot
//     before it, if the limits allow that and each target at which it stands in the line can afford it: the move
//     takes at most 1/20 of each window, or the last 19 distances of a rate are together at most 20 intervals.
//     It moves once, for the first such target and limit.
//   - An interval that is not in whole microseconds is rounded up.
//   - Place adds permits one by one until the ask is complete, or until the next slot is later than the
//     ask allows. Refused permits are not recorded. The slots of a grant are in order: a permit gets no room before
//     the permits that the same step has placed.
//   - A repeated request of the same client gets the same slots again and takes nothing, while the
//     request is remembered.
//   - The store remembers each step of a call of several steps, and the first step for longer than the others. A
//     repetition gets the grants of the steps up to the first one that the store does not remember. The repetition
//     ends the request there, so a step that arrives later gets nothing.
//   - No slot of a call is further ahead than the call's wait, or than the LongestWait of one of its pacers.
//     A call that waits for one pacer keeps another one closed for no longer than the other one allows.
//   - A changed limit applies to the slots that are already recorded.
//
// # Permits that go back
//
// A request gives back its permits from a given number on, as far as their slots are later than now: the request and
// the log of each target lose them in one step. Nothing goes back twice, because a repeated request has only the
// remaining permits. No window counts a slot that went back. The slots of the line from the first such slot on stand
// ahead, so that later permits get the room before them.
//
// A log keeps slots that it cannot lose, and they count until their windows pass. It gets at most MostReturned strands,
// so earlier slots stay in the line when more would be needed. Merge may have moved permits of a slot that has several
// of them, and such a slot stays in the line if the limits are not Exact. Slots that a log has dropped and that its
// limits would see again count at its oldest slot, which is not before theirs. A log whose pacer was forgotten after
// the request has none of its slots, although it may have others at the same instants. The time of a request is known
// only within its longest wait: it was made at its newest slot less that wait, or later.
//
// A call of a share gives back to the pacers, and to the parts of pacers with a rate; each call gives back to their far
// logs, too. A pacer without a rate may have slots of other calls at the same instant, in another part, so its parts
// count what went back until it passes.
//
// A caller that knows the request id may give back future slots, because a sender that waits for its slots has used
// none of these.
//
// # Leases
//
// A sender that dies gives nothing back, and without a lease its permits count until they pass. A call with a lease
// gives back its future permits when the lease ends. Each repetition of the call extends the lease.
//
//   - A sender uses a permit only if its slot comes within a lease of the time at which the sender sent the latest
//     answered call. The store starts the lease later than that, so no such permit goes back.
//   - A store keeps the call and the end of each lease. Every second, each instance lists the ended leases, the newest
//     first, returns their permits one lease after the other, and then removes the leases. Two instances may do this at
//     once, because a return counts once. A log loses its latest slots without a gap, and it can have only some gaps.
//   - A lease that has ended is never extended: another instance may be returning the permits. The repetition of such
//     a call returns the permits itself, and then tells the rest.
//   - A call keeps the lease after it has taken the permits. An earlier lease may have ended since the store told the
//     permits of a repetition. So the repetition asks for the permits again after it has kept the lease.
//   - A lease whose permits cannot go back, because a pacer is missing in the policy in force, stays for a minute:
//     another instance may have a newer policy.
//
// # Targets that share
//
// A slow and a fast target in one call waste no slots: calls for only the fast one get the room between the slots
// ahead. Each slot ahead delays a single permit by less than an interval. If calls ask a target for more than it
// allows, they get its slots in order of arrival.
//
// Slots of two rates meet only at whole intervals. Let s be the slow interval in fast intervals and f the fraction
// of s. Both targets can give out 95 % of their rates if s ≥ 19·f·(1-f), and no rule reaches it otherwise: between
// two slots of the slow target that are d apart, the fast one has at most the whole number of d. This always
// holds for s ≥ 4.75 and for every whole s. For 100/s within 250/s, s is 2.5: the slow target then gives out 95 %,
// and the fast one 86 %. TestASharedPacerGivesOutItsRate measures this.
//
// # Shares
//
// A share keeps a part of a pacer for its own calls. A call belongs to one share at most. The rest are the other calls,
// and the permits that a share takes beyond its part. Each share has a log, and the rest has a log, beside the pacer's
// own log. All of these logs are ordinary targets, so the rules above determine every slot.
//
//   - A share's part of a limit is the share's percentage of Max, rounded up. A rate of one permit each interval
//     becomes a limit of n permits in n intervals, its period. n is the least number of which whole parts are the
//     shares, up to one percent more than their own, times the least number that makes a period of 50 ms. For 20 % of
//     250/s, n is 15.
//   - A call of the rest asks for the pacer and for the rest, whose limits are what the shares leave, at least 1. A
//     limit of a window up to SoonWindow, or of a rate, leaves the part of a share too, unless the share is asked for.
//     A longer limit keeps its parts at all times: what the rest took of a day would not come back in time. When the
//     shares leave all, the call asks for the pacer alone, as if the pacer had no shares.
//   - A call of the rest gets slots for RestAhead at most, or for two intervals of a slower rate.
//   - A call of a share asks in three steps for what it still lacks: for the pacer and its own part, for slots within a
//     period; then for the pacer and the rest, as a call of the rest; then for its own part, for its whole wait.
//   - A share is asked for during KeptFor after a call of it, granted or not. An instance knows its own calls at once,
//     and those of others after readEvery: each second with a call, an instance takes a permit of the share's mark, and
//     each readEvery with a call of the rest, an instance looks at the marks.
//
// So a share that begins to be asked for waits for the slots within RestAhead, and for the longest window up to
// SoonWindow. After that it gets its part in each period or window, even if other calls ask for more than the pacer
// allows. While a share is asked for and takes less than its part, the rest of the part is lost. RunShares in package
// pacingtest has the figures.
//
// # Calls without a wait
//
// A call without a wait gets slots of the present moment. A slot that no call may reserve is lost until the next call
// comes. A slow pacer would grant a slot only if its caller also came first at a busy fast pacer. So a call that gets
// nothing at once takes the next slot if that is near. The call is held until the slot is there, and its answer has no
// waits.
//
//   - A call of one pacer with a rate is held for an interval, and 5 ms at most. A call of several pacers is held for
//     5 ms and an interval of each pacer but the slowest one, and HeldFor at most. Without a rate, the interval is the
//     shortest window divided by its Max. The LongestWait of each pacer is a bound, too.
//   - So a call of more pacers reserves further ahead than its rivals at each of them, and gets the slot
//     of the slowest one.
//   - A call for several permits is held only if it gets none at once, and then for the permits up to that slot: they
//     all start when the answer comes.
//   - The answer to a refused call tells the time at which the call would be held.
//
// TestCallsWithoutAWaitShare measures that each pacer gives out its rate.
//
// # Waits of different length
//
// Calls with a longer wait could fill a pacer up to this wait, so that calls with a shorter wait would get nothing.
// Therefore calls with longer waits leave room. The waits form classes: from 0, 500 ms, 1 s, 2 s, 5 s, 10 s, 30 s, and
// from 2 m on. The reach of a call is the start of its class.
//
//   - A call asks for its reach at a pacer that has a slot beyond the wait of the call, and more than 250 ms ahead. A
//     call of the reach 0 asks only when it gets less than it wants. A reach is asked for during KeptFor. Instances
//     mark it and read marks as those of shares. A call reads no marks at a pacer whose newest slot is, as the instance
//     has last seen it, less than LeastReach ahead.
//   - While a shorter reach is asked for, a call asks in two steps: for slots within half of the reach, and LeastReach
//     at most; then for the pacer and its far log, whose limits are three quarters of those of the pacer, for its whole
//     wait. Of several shorter reaches the least one counts, and the call goes no further ahead than the next one.
//   - In the far log, a rate is a limit of three quarters of n permits in n intervals, rounded down and at least 1. n
//     is the number of intervals in half of the reach, at least 2. For the reach 0, n is at least 48, in at least
//     100 ms: a call without a wait rarely finds a slot at once, so up to an interval of each n is lost.
//   - The far log has slots for at most 64 of its shortest windows ahead, because each one is a strand of the pacer's
//     log.
//
// So shorter waits get at least a quarter, after the slots that were given out before. Longer waits take what these
// leave, when they ask within half of the reach. A caller that reserves far ahead and does not ask again leaves a
// quarter unused, and so do all longer waits beside calls without a wait. Pacers with shares, and pacers per message or
// key, leave no room: a share separates the callers there. RunWaits in package pacingtest has the figures.
//
// # The log
//
// A log is a list of runs. A run is a number of permits with a fixed burst and a fixed distance. A sender
// that takes all permits of a pacer leaves few runs, whatever Max is. Senders that take single permits at
// any instant leave one run for each, and a log holds at most MostRuns runs.
//
// Slots ahead are strands, at most MostAhead: a strand has a fixed burst and distance, too, but strands may
// overlap. A log that needs more moves the slots up to the end of the strand that ends first to the line. The room
// before them is lost. A search for room ends after MostLooks steps, or more work than MostWork, and the slot then
// comes after all slots ahead. A limit with more than MostWindows slots ahead in a window counts them all at once.
//
// Merge shortens a full log. It keeps the runs that limits can see, and moves permits to the slot of a later
// permit, so that a limit is never exceeded. Merge cuts the permits of a log, in order, into groups and
// moves each group to its latest slot. The group size is a small part of the smallest Max that still has to
// see the permits. A limit then behaves as if Max were smaller by less than one group.
//
// Groups start at multiples of their size, counted from the log's first permit. The group size of a greater
// limit is a multiple of the sizes of lesser limits. So a second merge moves nothing again, and losses do
// not add up, unless the limits change.
//
// The loss depends on the number of limits, without a rate:
//
//	limits of a log       1         2         3       4
//	loss is less than     1/2,200   1/1,100   1/740   1/560   of Max
//
// A limit of up to 560 loses nothing, and neither does a single limit of up to 2,200. TestMeasuredLoss
// measures the loss; 50,000 irregular calls in the longest window lost at most 0.056 % of the permits.
package pacing
