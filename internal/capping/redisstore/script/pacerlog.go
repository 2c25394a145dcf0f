package script

import (
	"errors"

	"capper/internal/pacing"
)

// A PacerLog is the log of a pacer, together with parts of its stored form.
type PacerLog struct {
	Log     *pacing.Log // nil: the pacer has no log
	ahead   string      // the slots ahead and the numbers that follow them
	trailer string
}

var errPacerLog = errors.New("the stored log of a pacer (rate limiter) is not valid")

// DecodePacerLog decodes the stored log of a pacer.
func DecodePacerLog(stored string) (PacerLog, error) {
	start := len(stored) - trailerSize
	if start < 0 || stored[len(stored)-1] != logFormat && stored[len(stored)-1] != aheadFormat {
		return PacerLog{}, errPacerLog
	}
	l := PacerLog{trailer: stored[start:]}
	if stored[len(stored)-1] == aheadFormat {
		if start < areaSize {
			return PacerLog{}, errPacerLog
		}
		area := int(stored[start-3])<<8 + int(stored[start-2]) + areaSize
		if start < area || stored[start-1] == 0 || area < areaSize+int(stored[start-1])*pacing.StrandSize {
			return PacerLog{}, errPacerLog
		}
		l.ahead = stored[start-area : start]
		start -= area
	}
	start -= int(l.trailer[cursorsAt]) * cursorSize
	r := reader{rest: l.trailer}
	total, runs := int64(r.uint(totalSize)), int(r.uint(lengthSize))
	if runs == 0 && l.ahead == "" || start != runs*pacing.RunSize {
		return PacerLog{}, errPacerLog
	}
	log, err := pacing.DecodeRuns([]byte(stored[:start]), total)
	if err != nil {
		return PacerLog{}, err
	}
	if n := len(l.ahead); n > 0 {
		if err := log.DecodeAhead([]byte(l.ahead[:int(l.ahead[n-1])*pacing.StrandSize])); err != nil {
			return PacerLog{}, err
		}
	}
	l.Log = log
	return l, nil
}

// The method Full reports whether the pacer's log has too many runs. A full log must be merged (shortened) before
// pace.lua can add permits.
func (l *PacerLog) Full() bool { return l.Log != nil && len(l.Log.Runs) >= fullRuns }

// The method "merged" returns the stored form of a pacer's log after a merge has shortened the log.
func (l *PacerLog) merged() (stored []byte) {
	runs := l.Log.Runs
	for _, run := range runs {
		stored = pacing.AppendRun(stored, run)
	}
	for range l.trailer[cursorsAt] {
		stored = appendUint(stored, noCopies, 2*lengthSize)
		stored = append(stored, make([]byte, copiedRuns*pacing.RunSize)...)
	}
	stored = append(stored, l.ahead...)
	stored = appendUint(stored, uint64(l.Log.Total), totalSize)
	stored = appendUint(stored, uint64(len(runs)), lengthSize)
	oldest := pacing.Run{First: l.Log.Total}
	if len(runs) > 0 {
		oldest = runs[0]
	}
	stored = appendUint(stored, uint64(oldest.First), totalSize)
	stored = appendUint(stored, uint64(oldest.At), timeSize)
	stored = appendUint(stored, fullRuns, lengthSize)
	stored = append(stored, l.trailer[untilAt:rewrittenAt]...)
	r := reader{rest: l.trailer[rewrittenAt:]}
	stored = appendUint(stored, r.uint(rewriteSize)+1, rewriteSize)
	return append(stored, l.trailer[cursorsAt:]...)
}

// The method Merge encodes a call of merge.lua, which replaces a pacer's stored log by the merged (shortened) log.
func (a *Args) Merge(s *Script, key string, l *PacerLog) {
	a.begin(s)
	a.buf = append(a.buf, key...)
	a.endKey()
	a.finish(1, blob(l.ahead+l.trailer), l.merged())
}

// DecodeMerged decodes the reply of merge.lua.
func DecodeMerged(reply string) error {
	if reply != "D" && reply != "N" {
		return ErrReply
	}
	return nil
}
