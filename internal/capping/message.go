package capping

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// MaxMessageID is the most bytes of a message id.
const MaxMessageID = 128

// Message names a send within a channel. The same ID in two namespaces is two
// messages: teams need not know each other's ids.
type Message struct {
	Namespace string // of the caller's key, a name; "": none. Never with a byte 0xFF, which no UTF-8 holds
	ID        string // what the caller calls it; UTF-8, up to MaxMessageID bytes. "": no message
}

// namespaceMark stands before and after a namespace in a text.
const namespaceMark = "\xff"

// Text is the message in one string, as the stores remember it and as its
// token is made from it: the plain ID where there is no namespace, else
// 0xFF namespace 0xFF ID. No two messages have the same one.
func (m Message) Text() string {
	if m.Namespace == "" {
		return m.ID
	}
	return namespaceMark + m.Namespace + namespaceMark + m.ID
}

// MaxMessageText is the most bytes of a Text.
const MaxMessageText = MaxMessageID + MaxName + 2*len(namespaceMark)

// MessageOf is the message of a Text. Any other text is an ID.
func MessageOf(text string) Message {
	if rest, named := strings.CutPrefix(text, namespaceMark); named {
		if namespace, id, _ := strings.Cut(rest, namespaceMark); namespace != "" && id != "" {
			return Message{namespace, id}
		}
	}
	return Message{ID: text}
}

// Token stands for a message in a log: the first 6 bytes of the SHA-256 of its
// text. Two messages of one user's log and channel collide with a probability of
// 1 in 2^48 per pair. The zero token is no message.
type Token [6]byte

// Token is the message's token; without an ID it is the zero token.
func (m Message) Token() Token {
	if m.ID == "" {
		return Token{}
	}
	sum := sha256.Sum256([]byte(m.Text()))
	token := Token(sum[:6])
	if token == (Token{}) {
		token[5] = 1
	}
	return token
}

// BulkUsers is the number of users from which a call's message id is always
// remembered.
const BulkUsers = 100

const (
	mostKept   = 1 << 14     // messages that a memory knows again, the latest half of them for certain
	storeAgain = time.Minute // after which a small call stores its message's text once more
)

// MessageMemory decides which messages a store remembers: those it stores with
// their text, so that a person who reads a log sees ids and not tokens, and
// counts. Messages of bulk calls (BulkUsers or more) always are. Of those that
// only smaller calls have, at most 2 a second are taken up, 1,000 in a burst: an
// id and its counts for each single user would cost more than the logs. What was taken up once
// stays, as long as it is among the last few thousand that were asked for.
// It is safe for concurrent use.
type MessageMemory struct {
	clock func() time.Time
	small *rate.Limiter

	mu    sync.Mutex
	young map[Message]*keptMessage
	old   map[Message]*keptMessage // the generation before: what is asked for again becomes young
}

// keptMessage is what a memory knows of a message.
type keptMessage struct{ stored time.Time } // when its text was last stored; zero: not yet

// NewMessageMemory is an empty memory with a full burst.
func NewMessageMemory(clock func() time.Time) *MessageMemory {
	return &MessageMemory{clock: clock, small: rate.NewLimiter(2, 1000), young: make(map[Message]*keptMessage)}
}

// Keep reports whether the store should remember the batch's message and count
// its sends. Once it has, it does for every later batch of the message.
func (m *MessageMemory) Keep(b *Batch) bool {
	return b.Record && m.KeepSends(b.Message, len(b.Users))
}

// KeepSends is Keep for so many sends of a message that were recorded elsewhere.
func (m *MessageMemory) KeepSends(message Message, sends int) bool {
	if message.ID == "" {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(message) != nil {
		return true
	}
	if sends < BulkUsers && !m.small.AllowN(m.clock(), 1) {
		return false
	}
	m.add(Message{strings.Clone(message.Namespace), strings.Clone(message.ID)}, new(keptMessage))
	return true
}

// Due reports whether the text of a message that is kept should be stored with
// this batch: with bulk calls always, with smaller ones once a minute.
func (m *MessageMemory) Due(b *Batch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.find(b.Message)
	if kept == nil {
		return false
	}
	now := m.clock()
	if since := now.Sub(kept.stored); len(b.Users) < BulkUsers && since >= 0 && since < storeAgain {
		return false
	}
	kept.stored = now
	return true
}

// find is what is known of the message, or nil.
func (m *MessageMemory) find(message Message) *keptMessage {
	if kept := m.young[message]; kept != nil {
		return kept
	}
	kept := m.old[message]
	if kept != nil {
		m.add(message, kept)
	}
	return kept
}

// add makes the message the youngest.
func (m *MessageMemory) add(message Message, kept *keptMessage) {
	if len(m.young) >= mostKept/2 {
		m.old, m.young = m.young, make(map[Message]*keptMessage)
	}
	m.young[message] = kept
}
