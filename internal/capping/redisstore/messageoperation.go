package redisstore

import (
	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// An atLeastOperation marks a message's counts of sends in one partition as lower bounds.
type atLeastOperation struct {
	counts *messageCounts
	token  capping.Token
	begins bool // also mark a message that has no counts yet
}

// AtLeast returns operations that mark the messages' counts of sends in one partition as lower bounds. If the argument
// "begins" is true, the operations also mark messages without counts.
func (c *messageCounts) AtLeast(begins bool, tokens ...capping.Token) (marks []dispatch.Operation) {
	for _, token := range tokens {
		marks = append(marks, &atLeastOperation{c, token, begins})
	}
	return marks
}

// The method Encode sets the arguments of atleast.lua.
func (o *atLeastOperation) Encode(c *dispatch.Command) {
	config := &o.counts.config
	c.Args.AtLeast(config.Scripts.AtLeast, config.Prefixes[c.Partition], o.token, config.Retention(), o.begins)
}

// The method Stamp sets the time of the call. The script atleast.lua computes the expiry of the counts from the time of
// the call.
func (o *atLeastOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) { c.Args.StampAtLeast(at.Now) }

// The method Apply ignores the reply.
func (o *atLeastOperation) Apply(*dispatch.Command) (int, error) { return 0, nil }

// An addOperation adds the numbers of a Delta to a message's decision counts.
type addOperation struct {
	counts *messageCounts
	delta  *messages.Delta
	flush  [script.FlushSize]byte
	begins bool // the counts of a message without stored data begin now
	added  bool
}

// The method Encode sets the arguments of answers.lua.
func (o *addOperation) Encode(c *dispatch.Command) {
	keep := o.counts.keep()
	if messages.IsActivity(o.delta.Message) {
		keep = messages.ActivityKeep
	}
	c.Args.Answers(o.counts.config.Scripts.Answers, o.counts.answerKeys(o.delta.Message.Token(), o.delta.Last),
		o.delta, o.flush, keep, o.begins)
}

// The method Stamp does nothing, because the command of an addOperation contains no time.
func (o *addOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the reply of answers.lua.
func (o *addOperation) Apply(c *dispatch.Command) (int, error) {
	if c.Reply != "D" && c.Reply != "N" {
		return 0, script.ErrReply
	}
	o.added = true
	return 0, nil
}

// A titleOperation stores the title of a message.
type titleOperation struct {
	counts  *messageCounts
	message capping.Message
	title   string
	begins  bool // a message without stored data may get a title
	refused bool
}

// The method Encode sets the arguments of title.lua.
func (o *titleOperation) Encode(c *dispatch.Command) {
	c.Args.Title(o.counts.config.Scripts.Title, o.counts.answerKeys(o.message.Token(), 0), o.message, o.title,
		o.counts.keep(), o.begins)
}

// The method Stamp does nothing, because the script has no time stamp.
func (o *titleOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the reply of title.lua.
func (o *titleOperation) Apply(c *dispatch.Command) (int, error) {
	if c.Reply != "D" && c.Reply != "N" {
		return 0, script.ErrReply
	}
	o.refused = c.Reply == "N"
	return 0, nil
}

// A readOperation runs one Redis command whose reply is an array of strings.
type readOperation struct {
	args []string
	list []string
}

// The method Encode sets the command.
func (o *readOperation) Encode(c *dispatch.Command) { c.Args.Set(o.args...) }

// The method Stamp does nothing, because the command of a readOperation contains no time.
func (o *readOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply stores the reply.
func (o *readOperation) Apply(c *dispatch.Command) (int, error) {
	if c.List == nil {
		return 0, script.ErrReply
	}
	o.list = c.List
	return 0, nil
}

// A reading is a command that reads a Redis key, together with the partition of the key.
type reading struct {
	readOperation
	partition int
}
