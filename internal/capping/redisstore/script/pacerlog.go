package script

import (
	"errors"

	"capper/internal/pacing"
)

// PacerLog is a pacer's log as Redis stores it.
type PacerLog struct {
	Log     *pacing.Log // nil: there is no log
	trailer string
}

var errPacerLog = errors.New("the stored log of a pacer is not valid")

// DecodePacerLog decodes a stored log.
func DecodePacerLog(stored string) (PacerLog, error) {
	start := len(stored) - trailerSize
	if start < 0 || stored[len(stored)-1] != logFormat {
		return PacerLog{}, errPacerLog
	}
	l := PacerLog{trailer: stored[start:]}
	start -= int(l.trailer[cursorsAt]) * cursorSize
	r := reader{rest: l.trailer}
	total, runs := int64(r.uint(totalSize)), int(r.uint(lengthSize))
	if runs == 0 || start != runs*pacing.RunSize {
		return PacerLog{}, errPacerLog
	}
	log, err := pacing.DecodeRuns([]byte(stored[:start]), total)
	if err != nil {
		return PacerLog{}, err
	}
	l.Log = log
	return l, nil
}

// Full reports whether the log must be merged before pace.lua adds to it.
func (l *PacerLog) Full() bool { return l.Log != nil && len(l.Log.Runs) >= fullRuns }

// merged returns the bytes to store after Log has been merged.
func (l *PacerLog) merged() (stored []byte) {
	runs := l.Log.Runs
	for _, run := range runs {
		stored = pacing.AppendRun(stored, run)
	}
	for range l.trailer[cursorsAt] {
		stored = appendUint(stored, noCopies, 2*lengthSize)
		stored = append(stored, make([]byte, copiedRuns*pacing.RunSize)...)
	}
	stored = appendUint(stored, uint64(l.Log.Total), totalSize)
	stored = appendUint(stored, uint64(len(runs)), lengthSize)
	stored = appendUint(stored, uint64(runs[0].First), totalSize)
	stored = appendUint(stored, uint64(runs[0].At), timeSize)
	stored = appendUint(stored, fullRuns, lengthSize)
	stored = append(stored, l.trailer[untilAt:rewrittenAt]...)
	r := reader{rest: l.trailer[rewrittenAt:]}
	stored = appendUint(stored, r.uint(rewriteSize)+1, rewriteSize)
	return append(stored, l.trailer[cursorsAt], logFormat)
}

// Merge sets the call of merge.lua that replaces the log by its merged form.
func (a *Args) Merge(s *Script, key string, l *PacerLog) {
	a.begin(s)
	a.buf = append(a.buf, key...)
	a.endKey()
	a.finish(1, blob(l.trailer), l.merged())
}

// DecodeMerged decodes the reply of merge.lua.
func DecodeMerged(reply string) error {
	if reply != "D" && reply != "N" {
		return ErrReply
	}
	return nil
}
