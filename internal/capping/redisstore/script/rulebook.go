package script

import "capper/internal/capping"

// Rulebook is the rules of every group, encoded. A call gets those of the
// groups that its users are in.
type Rulebook struct {
	text []byte
	ends []int // of each group
	most int   // rules of a group
}

// NewRulebook encodes the rules by group, those of a batch that Batch.Check takes.
func NewRulebook(groups [][]capping.Rule) (b Rulebook) {
	for _, rules := range groups {
		b.text = append(b.text, byte(len(rules)))
		for i := range rules {
			b.text = appendRule(b.text, &rules[i])
		}
		b.ends = append(b.ends, len(b.text))
		b.most = max(b.most, len(rules))
	}
	return b
}

func (b *Rulebook) group(g uint8) []byte {
	start := 0
	if g > 0 {
		start = b.ends[g-1]
	}
	return b.text[start:b.ends[g]]
}

// callRules and callJudgements bound what a call reads of rules, and how often
// it applies one, to about a millisecond each.
const (
	callRules      = 1024
	callJudgements = 4096
)

// CallUsers is the most users of a call under these rules, where calls have at
// most so many.
func (b *Rulebook) CallUsers(most int) int {
	most = min(most, callJudgements/max(b.most, 1))
	if b.most*min(len(b.ends), most) > callRules {
		most = min(most, callRules/b.most)
	}
	return most
}
