//go:build storms

package redisstore

import "testing"

func TestScriptAgreesWithJudgeForLong(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(t *testing.T, l layout) { scriptAgreesWithJudge(t, l, 8) })
}

func TestScriptAgreesWithUnionForLong(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(t *testing.T, l layout) { scriptAgreesWithUnion(t, l, 8) })
}
