// Package pacing decides how fast allowed sends may start. Package pacing grants permits at the rates and limits of
// pacers.
//
// # Vocabulary
//
// A permit is the right to start one send at the permit's slot or later. A slot is an instant, in microseconds. A pacer
// has limits: at most Max slots in every window [t, t+Window), for every t. A rate is a limit of one slot per interval.
// The log of a pacer holds the pacer's slots, newest last. A pacer per message has a separate log for each message. A
// target is a log together with its limits. An Ask requests permits of several targets at once. A grant holds permits
// that all targets of an ask grant in one atomic step.
//
// # Flow
//
//	Pacers.Take:   names → limits of each (Policy) → Store: place and record → grant
//	Pacers.Return: request → Store: remove slots from the request and from the logs → returned permits
//
// All pacers of a call are in one group, because one atomic step needs all their logs in one place. A store may keep
// groups in different places, such as Redis nodes, so each group has separate request ids.
//
// Place puts permits into logs as a pure function, without a clock or I/O. Stores place and record permits in one
// atomic step. Package redisstore places permits in a Lua script, and a differential test compares the script with
// Place.
//
// # Rules for every slot
//
//   - The next permit gets the first slot, now or later, at which every limit of every target allows one more permit.
//     No window that contains the slot may have more than Max slots, even if some of them are later than the slot.
//   - The log of a target has a line of slots. If the target could not have granted a slot earlier, the slot is in the
//     line, and no later permit gets a slot before it. A target that is asked alone therefore grants its slots in
//     order.
//   - If only the other targets of a call delayed a slot, it is a slot ahead: later permits can get free slots before
//     it. Slots ahead join the line when the present time, the line, or the next slot under the target's own limits
//     passes them.
//   - If a slot is less than one interval of a rate after the next slot under the target's own limits, no permit fits
//     before it. The slot is then in the line.
//   - At a target with a rate, a slot ahead is delayed until it is a whole number of intervals after the slot before
//     it. The limits must allow the delay, and every target with the slot in its line must afford the delay. A target
//     affords a delay of at most 1/20 of each window. It also affords the delay if the last 19 distances of a rate are
//     together at most 20 intervals. A slot is delayed only once, for the first such target and limit.
//   - An interval that is not in whole microseconds is rounded up.
//   - Place adds permits one by one until the ask is complete, or until the next slot is later than the ask allows.
//     Place does not record permits that it refuses. The slots of a grant are in order: no permit gets a slot before
//     the permits that the same step has already placed.
//   - While the store remembers a request, a repeated request of the same client gets the same slots again and takes no
//     permits.
//   - If a call has several steps, the store remembers each step, and the first step longest. A repeated call gets the
//     grants of the steps up to the first step that the store does not remember. The repeated call ends the request at
//     that step, so that a step of the first call that arrives later gets no permits.
//   - No slot of a call is further ahead than the wait of the call, or than the LongestWait of one of its pacers. A
//     call that waits for one pacer therefore blocks another pacer no longer than the other pacer allows.
//   - A changed limit also applies to slots that are already recorded.
//
// # Returned permits
//
// A caller can return the permits of a request from a given number on, if their slots are in the future. The request
// and the log of each target lose these permits in one atomic step. No permit is returned twice, because a repeated
// request has only the remaining permits. No window counts a returned slot. From the first returned slot on, the slots
// of the line become slots ahead, so that later permits can get the freed slots.
//
// A log keeps slots that it cannot remove, and limits count these slots until their windows pass. A return makes at
// most MostReturned strands in a log. If more strands would be needed, earlier slots stay in the line. A slot with
// several permits may contain permits that Merge has moved. Such a slot stays in the line unless the limits are Exact.
// If limits would again count slots that the log has dropped, these slots count at the time of the log's oldest slot,
// which is not before them. If a pacer was forgotten after the request, its log has no slots of the request, although
// the log may have other slots at the same instants. The time of a request is known only within its longest wait: the
// request was made at its newest slot less that wait, or later.
//
// For a call of a share, a return removes slots from the pacers' logs, and from the logs of shares at pacers with a
// rate. Every return also removes slots from the far logs of pacers with a rate. At a pacer without a rate, another
// share may have slots of other calls at the same instant. The logs of its shares therefore count returned slots until
// these slots pass.
//
// A caller that knows the request id may return future slots, because a sender that waits for its slots has not used
// them yet.
//
// # Leases
//
// A sender that crashes returns nothing, and without a lease its permits count until their slots pass. When the lease
// of a call ends, the service returns the call's permits with future slots. Each repetition of the call extends the
// lease.
//
//   - A sender may use a permit only if its slot is at most one lease duration after the sender sent its latest
//     answered call. The store starts the lease later than that, so that it returns no permit that the sender may use.
//   - A store keeps the call and the end of each lease. Every second, each instance lists the ended leases, the newest
//     first. Each instance returns the permits of one lease at a time, and then removes the leases. Two instances may
//     do this at once, because a permit is returned only once. Newest leases come first because removing the latest
//     slots of a log leaves no gap, and a log can have only some gaps.
//   - A lease that has ended is never extended, because another instance may be returning its permits. A repetition of
//     a call with an ended lease returns the permits itself, and then answers with the remaining permits.
//   - A call begins or extends its lease after it has taken the permits. Between these two steps of a repetition, an
//     earlier lease may have ended. The repetition therefore asks for its permits again after it has extended the
//     lease.
//   - If the permits of a lease cannot be returned because the policy in force lacks a pacer, the lease stays for a
//     minute. Another instance may have a newer policy.
//
// # Targets that share
//
// A call for a slow and a fast target wastes no slots of the fast target. Calls for the fast target alone get the free
// slots between the slots ahead. Each slot ahead delays one other permit by less than an interval. If calls ask a
// target for more than it allows, they get the target's slots in order of arrival.
//
// The slots of two rates coincide only at whole intervals. Let s be the slow interval, measured in fast intervals, and
// let f be the fraction of s. Both targets can grant 95 % of their rates if s ≥ 19·f·(1-f). If s < 19·f·(1-f), no rule
// can reach 95 % of both rates. If two slots of the slow target are d fast intervals apart, the fast target has at most
// d slots, rounded down, in that time. The condition s ≥ 19·f·(1-f) holds for s ≥ 4.75 and for every whole s. For 100/s
// within 250/s, s is 2.5: the slow target then grants 95 % of its rate, and the fast target 86 %.
// TestASharedPacerGivesOutItsRate measures these percentages.
//
// # Shares
//
// A share reserves a part of a pacer for the calls of the share. A call belongs to at most one share. The rest of a
// pacer is for calls without a share, and for permits that a share takes beyond its part. In addition to the pacer's
// own log, each share has a log, and the rest of the pacer has a log. All of these logs are ordinary targets, so the
// rules above determine every slot.
//
//   - A share's part of a limit is the share's percentage of Max, rounded up. A rate of one permit in each interval is
//     divided like a limit of n permits in n intervals. The n intervals are the period of the rate. n is the smallest
//     number of which each share gets a whole number, at least its percentage and at most one percentage point more.
//     The number n is multiplied until the period is at least 50 ms. For 20 % of 250/s, n is 15.
//   - A call without a share asks for the pacer and for the rest of the pacer. The limits of the rest of a pacer are
//     the remainders of the pacer's limits after all shares, at least 1. While a share is not in demand, calls without
//     a share also get its part of a rate and of a limit with a window up to SoonWindow. A limit with a longer window
//     always keeps the parts of shares. Permits that other calls took from the limit of a day would not come back in
//     time. If no share keeps a part, a call without a share asks for the pacer alone, as if the pacer had no shares.
//   - A call without a share gets only slots within RestAhead, or within two intervals of a slower rate.
//   - A call of a share asks in three steps for the permits that it still lacks. The first step asks for the pacer and
//     the share's part, for slots within a period. The second step asks for the pacer and the rest of the pacer, like a
//     call without a share. The third step asks for the share's part again, for the whole wait.
//   - A share is in demand for KeptFor after one of its calls, even if the call was refused. An instance learns of its
//     own calls at once, and of calls at other instances after readEvery. Each instance takes a permit of the share's
//     mark once in each second with a call of the share. Each instance reads the marks of shares once in each readEvery
//     with a call without a share.
//
// A share that comes into demand therefore waits for the slots within RestAhead, and for the longest window up to
// SoonWindow. After that, the share gets its part in each period or window, even if other calls ask for more than the
// pacer allows. While a share is in demand but takes less than its part, the remainder of the part is lost. RunShares
// in package pacingtest has measured figures on shares.
//
// # Calls without a wait
//
// A call without a wait can get only slots of the present moment. If no call may reserve a slot, the slot is lost until
// the next call comes. In a call for two pacers, a slow pacer would grant a slot only if the call also came first at a
// busy fast pacer. A call that gets no permit at once therefore takes the next slot, if that slot is near. The service
// holds such a call until the slot comes, and its answer has no waits.
//
//   - A call of one pacer with a rate is held for at most an interval, and for at most 5 ms. A call of several pacers
//     is held for at most 5 ms plus an interval of each pacer except the slowest, and for at most HeldFor. For a pacer
//     without a rate, the interval is the shortest window divided by its Max. No call is held longer than the
//     LongestWait of one of its pacers.
//   - A call of several pacers therefore reserves further ahead than its rivals at each pacer, and gets the slot of the
//     slowest pacer.
//   - A call for several permits is held only if it gets no permit at once. Such a call is then held for the permits up
//     to the next slot, and all of these permits start when the answer comes.
//   - The answer to a refused call says when a retry would be held.
//
// TestCallsWithoutAWaitShare measures that each pacer grants its rate.
//
// # Waits of different length
//
// Calls with a longer wait could fill a pacer up to this wait, so that calls with a shorter wait would get nothing.
// Calls with longer waits therefore leave some slots free. The waits form classes, which begin at 0, 500 ms, 1 s, 2 s,
// 5 s, 10 s, 30 s and 2 m. The reach of a call is the wait at which the class of its wait begins.
//
//   - A call puts its reach in demand at a pacer whose newest slot is later than the call may wait, and more than 250
//     ms ahead. A call with the reach 0 does so only if it gets fewer permits than it wants. A reach stays in demand
//     for KeptFor. Instances mark reaches and read these marks in the same way as the marks of shares. A call reads no
//     marks at a pacer whose newest slot, as the instance last saw it, is less than LeastReach ahead.
//   - While a shorter reach is in demand, a call asks in two steps. The first step asks for slots within half of the
//     shorter reach, and within LeastReach. The second step asks for the pacer and its far log, for the whole wait. The
//     limits of the far log are three quarters of the pacer's limits. If several shorter reaches are in demand, the
//     shortest counts, and the call takes no slot later than the second shortest.
//   - In the far log, a rate is a limit of three quarters of n permits in n intervals, rounded down and at least 1. n
//     is the number of intervals in half of the reach, at least 2. For the reach 0, n is at least 48, and n intervals
//     take at least 100 ms. A call without a wait rarely finds a slot at once, so up to one interval of every n is
//     lost.
//   - The far log has slots up to 64 of its shortest windows ahead, because each of these windows needs a strand in the
//     pacer's log.
//
// Calls with shorter waits therefore get at least a quarter of the slots, after the slots that were granted before.
// Calls with longer waits can take the slots that calls with shorter waits leave, if they ask within half of the reach.
// If a caller reserves far ahead and does not ask again, a quarter of the slots stays unused. While calls without a
// wait are in demand, calls with longer waits cannot use that quarter either. Pacers with shares, and pacers per
// message or key, leave no slots free in this way. At these pacers, shares, messages or keys separate the callers.
// RunWaits in package pacingtest has measured figures on waits.
//
// # The log
//
// A log is a list of runs. A run is a number of permits with a fixed burst and a fixed distance between slots. If a
// sender takes all permits of a pacer, the log has few runs, whatever Max is. Senders that take single permits at any
// instant leave one run for each permit. A log holds at most MostRuns runs.
//
// Slots ahead are stored as strands, at most MostAhead of them. A strand also has a fixed burst and a fixed distance,
// but strands may overlap. If a log needs more strands, the slots up to the end of the strand that ends first move to
// the line. Free slots before the moved slots are lost. A search for a free slot ends after MostLooks steps, or after
// more work than MostWork. The permit then gets a slot after all slots ahead. If a window contains more than
// MostWindows slots ahead, the limit counts all of them at once.
//
// Merge shortens a full log. Merge keeps the runs that limits can count. Merge moves permits only to the slot of a
// later permit, so that no limit is ever exceeded. Merge cuts the permits of a log, in order, into groups and moves
// each group to its latest slot. The size of a group is a small part of the smallest Max whose limit still counts the
// permits. A limit then behaves as if its Max were smaller, by less than one group.
//
// Groups start at multiples of their size, counted from the log's first permit. The group size for a larger Max is a
// multiple of the group sizes for smaller ones. A second merge therefore moves nothing again, and losses do not add up,
// unless the limits change.
//
// The loss depends on the number of limits, without counting a rate:
//
//	limits of a log       1         2         3       4
//	loss is less than     1/2,200   1/1,100   1/740   1/560   of Max
//
// With up to four limits, a limit with a Max up to 560 loses nothing. A single limit loses nothing up to a Max of
// 2,200. TestMeasuredLoss measures the loss. With 50,000 irregular calls in the longest window, at most 0.056 % of the
// permits were lost.
package pacing
