package wire

import (
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/pacing"
)

// EncodePermits appends the response to a permit request to dst.
func EncodePermits(dst []byte, r *PermitsRequest, given *pacing.Answer) []byte {
	a := &answer{out: dst}
	a.raw(`{"granted":`).number(given.Granted)
	a.raw(`,"slots":[`).slots(given.Runs)
	a.raw(`]`)
	if given.Replayed {
		a.raw(`,"replayed":true`)
	}
	a.raw(`,"refused":`).number(given.Refused)
	if given.Refused > 0 {
		a.limitedBy(given, r)
		a.raw(`,"retry_after_ms":`).millis(given.Next)
	}
	a.raw(`,"pacers":[`)
	for i := range given.Pacers {
		if i > 0 {
			a.raw(`,`)
		}
		a.pacer(&given.Pacers[i], &given.States[i], r)
	}
	a.raw("]}\n")
	return a.out
}

// The method "slots" writes the slots (start times) of the granted permits as durations from now. If the slot of a
// permit is in the past, slots() writes 0, because the caller may use the permit immediately.
func (a *answer) slots(runs []pacing.WaitRun) {
	due, first := 0, true
	flush := func() {
		if due > 0 {
			a.slot(&first, 0, 0, due)
			due = 0
		}
	}
	for _, r := range runs {
		past := r.Past()
		due += past
		if r.Permits == past {
			continue
		}
		flush()
		if r.Every == 0 || r.Burst == 1 {
			a.slot(&first, r.WaitOf(past), r.Every, r.Permits-past)
			continue
		}
		for past < r.Permits {
			n := min(r.Burst, r.Permits-past)
			a.slot(&first, r.WaitOf(past), 0, n)
			past += n
		}
	}
	flush()
}

func (a *answer) slot(first *bool, wait, every time.Duration, permits int) {
	if !*first {
		a.raw(`,`)
	}
	*first = false
	a.raw(`{"wait_ms":`).millis(wait)
	if every > 0 && permits > 1 {
		a.raw(`,"every_ms":`).millis(every)
	}
	a.raw(`,"permits":`).number(permits)
	a.raw(`}`)
}

// limitedBy writes the name of the limit that delays the next permit. If the next permit needs no wait, limitedBy
// writes no field. If a caller repeats a refused call, the response repeats the refusal, although the next permit may
// need no wait any more.
func (a *answer) limitedBy(given *pacing.Answer, r *PermitsRequest) {
	if given.Target < 0 {
		return
	}
	a.raw(`,"limited_by":{"pacer":`).text(given.Pacers[given.Target].Name)
	a.raw(`,"limit":`).text(limitName(&given.Pacers[given.Target], given.Limit))
	if tooEarly(given, r.MaxWait) {
		a.raw(`,"too_early":true`)
	}
	a.raw(`}`)
}

// tooEarly reports whether the next slot (start time) is within the max_wait of the call and of its pacers. The service
// grants a far slot later: until then, the slot stays free for calls of a share (reserved part), or for calls with a
// shorter wait. A repeated call never gets more permits, so the refusal of a repeated call says nothing about the next
// slot (start time).
func tooEarly(given *pacing.Answer, wait time.Duration) bool {
	if given.Replayed {
		return false
	}
	for i := range given.Pacers {
		wait = min(wait, given.Pacers[i].LongestWait())
	}
	return 0 < given.Next && given.Next <= wait
}

// limitName returns the name that responses show for the limit.
func limitName(p *pacing.Pacer, limit int) string {
	switch limit {
	case pacing.ByQueue:
		return api.LimitQueue
	case pacing.ByShare:
		return api.LimitShare
	}
	return p.LimitName(limit)
}

// The method pacer writes the state of a pacer, such as the number of granted permits, for the response to the caller.
func (a *answer) pacer(p *pacing.Pacer, state *pacing.State, r *PermitsRequest) {
	a.raw(`{"name":`).text(p.Name)
	switch p.Per {
	case pacing.PerMessage:
		a.raw(`,"per":"message","message_id":`).text(r.MessageID)
	case pacing.PerKey:
		a.raw(`,"per":"key","key":`).text(r.Key)
	}
	a.raw(`,"queue_ms":`).millis(state.Queue)
	a.raw(`,"next_ms":`).millis(state.Next)
	if i := p.Fullest(state); i >= 0 {
		a.raw(`,"used":`).number(state.Used[i])
		a.raw(`,"max":`).number(p.Limits[i].Max)
		a.raw(`,"window":`).text(p.LimitName(i))
	}
	if r.Permits == 0 {
		a.limits(p, state)
	}
	a.raw(`}`)
}

// The method "limits" writes the rate and all limits of a pacer, for a call that reads the state for a message or key.
func (a *answer) limits(p *pacing.Pacer, state *pacing.State) {
	if p.Rate.Permits > 0 {
		a.raw(`,"rate":`).text(p.Rate.String())
	}
	next := `,"limits":[`
	for i, limit := range p.Limits {
		a.raw(next).raw(`{"used":`).number(state.Used[i])
		a.raw(`,"max":`).number(limit.Max)
		a.raw(`,"window":`).text(p.LimitName(i)).raw(`}`)
		next = `,`
	}
	if len(p.Limits) > 0 {
		a.raw(`]`)
	}
}

// The method "millis" writes a duration in the format of api.Millis. The duration must not be negative.
func (a *answer) millis(d time.Duration) *answer {
	micros := d.Microseconds()
	a.out = strconv.AppendInt(a.out, micros/1000, 10)
	if rest := micros % 1000; rest > 0 {
		digits := [4]byte{'.', byte('0' + rest/100), byte('0' + rest/10%10), byte('0' + rest%10)}
		n := len(digits)
		for digits[n-1] == '0' {
			n--
		}
		a.out = append(a.out, digits[:n]...)
	}
	return a
}
