package redisstore

import (
	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// atLeastOperation marks the counts of a message in a partition as lower bounds.
type atLeastOperation struct {
	counts *messageCounts
	token  capping.Token
	begins bool // mark a message without counts too
}

// AtLeast returns the operations that mark the counts of the messages in a partition as lower bounds. begins marks
// messages without counts too.
func (c *messageCounts) AtLeast(begins bool, tokens ...capping.Token) (marks []dispatch.Operation) {
	for _, token := range tokens {
		marks = append(marks, &atLeastOperation{c, token, begins})
	}
	return marks
}

// Encode sets the arguments.
func (o *atLeastOperation) Encode(c *dispatch.Command) {
	config := &o.counts.config
	c.Args.AtLeast(config.Scripts.AtLeast, config.Prefixes[c.Partition], o.token, config.Retention(), o.begins)
}

// Stamp sets the time, which the counts' key has to outlive.
func (o *atLeastOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) { c.Args.StampAtLeast(at.Now) }

// Apply has nothing to take.
func (o *atLeastOperation) Apply(*dispatch.Command) (int, error) { return 0, nil }

// addOperation adds answers.
type addOperation struct {
	counts *messageCounts
	delta  *messages.Delta
	flush  [script.FlushSize]byte
	begins bool // a message of which nothing is remembered is counted from now on
	added  bool
}

// Encode sets the arguments.
func (o *addOperation) Encode(c *dispatch.Command) {
	c.Args.Answers(o.counts.config.Scripts.Answers, o.counts.answerKeys(o.delta.Message.Token()), o.delta, o.flush,
		o.counts.keep(), o.begins)
}

// Stamp has nothing to do.
func (o *addOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply takes the reply.
func (o *addOperation) Apply(c *dispatch.Command) (int, error) {
	if c.Reply != "D" && c.Reply != "N" {
		return 0, script.ErrReply
	}
	o.added = true
	return 0, nil
}

// readOperation reads an array of texts.
type readOperation struct {
	args []string
	list []string
}

// Encode sets the arguments.
func (o *readOperation) Encode(c *dispatch.Command) { c.Args.Set(o.args...) }

// Stamp has nothing to do.
func (o *readOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply keeps the reply.
func (o *readOperation) Apply(c *dispatch.Command) (int, error) {
	if c.List == nil {
		return 0, script.ErrReply
	}
	o.list = c.List
	return 0, nil
}

// reading is a command that reads, and the partition of its key.
type reading struct {
	readOperation
	partition int
}
