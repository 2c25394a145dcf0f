//go:build storms

package redisstore

import "testing"

func TestScriptAgreesWithJudgeForLong(t *testing.T) {
	t.Parallel()
	scriptAgreesWithJudge(t, judgeRounds)
}

func TestScriptAgreesWithUnionForLong(t *testing.T) {
	t.Parallel()
	scriptAgreesWithUnion(t, 8)
}
