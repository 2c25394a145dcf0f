package capping

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// MaxMessageID is the largest length of a message id in bytes.
const MaxMessageID = 128

// Message identifies a send to a user on one channel. The same ID in two namespaces means two messages, so that teams
// can choose their ids independently.
type Message struct {
	Namespace string // name of the API key's namespace; "": no namespace. UTF-8, so without a byte 0xFF
	ID        string // the caller's id of the message: UTF-8, up to MaxMessageID bytes; "": no message
}

// namespaceMark is the byte before and after the namespace in a message's text.
const namespaceMark = "\xff"

// Text returns the message as one string. Stores keep the text of a message. The Token is computed from the text. The
// text of a message without a namespace is the ID of the message. For a message with a namespace, the text is the byte
// 0xFF, the namespace, the byte 0xFF and the ID. Different messages have different texts.
func (m Message) Text() string {
	if m.Namespace == "" {
		return m.ID
	}
	return namespaceMark + m.Namespace + namespaceMark + m.ID
}

// MaxMessageText is the largest length in bytes of the text of a message (the message id with its namespace).
const MaxMessageText = MaxMessageID + MaxName + 2*len(namespaceMark)

// MessageOf returns the message with the given text, as written by Message.Text. If the text has no namespace in the
// form of Message.Text, the whole text becomes the ID of the message.
func MessageOf(text string) Message {
	if rest, named := strings.CutPrefix(text, namespaceMark); named {
		if namespace, id, _ := strings.Cut(rest, namespaceMark); namespace != "" && id != "" {
			return Message{namespace, id}
		}
	}
	return Message{ID: text}
}

// Token identifies a message in a log: the first 6 bytes of the SHA-256 hash of the message's text. Two messages in one
// user's log and channel have the same token (short hash) with a probability of 1 in 2^48. The zero token means no
// message.
type Token [6]byte

// Token returns the message's token. A message without an ID has the zero token.
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

// BulkUsers is the smallest number of users in a call for which a store always keeps the text of the call's message.
const BulkUsers = 100

const (
	mostKept   = 1 << 14     // the largest number of messages in a MessageMemory; the newer half always stays
	storeAgain = time.Minute // the shortest time between two writes of a message's text by small calls
)

// MessageMemory selects the messages whose texts a store keeps and whose sends the store counts. A store keeps the text
// of a remembered message, so that a person who reads a log sees message ids instead of tokens. If a bulk call (call
// with at least BulkUsers users) records sends of a message that has an id, the MessageMemory selects this message.
// From calls with fewer users, a MessageMemory selects at most 2 new messages per second on average, and at most 1,000
// new messages in a burst. Without this limit on selections, the message ids and counts of all single-user calls would
// take more memory than the users' logs. A message stays selected while it is among the last few thousand messages that
// were used. A MessageMemory is safe for concurrent use.
type MessageMemory struct {
	clock func() time.Time
	small *rate.Limiter

	mu    sync.Mutex
	young map[Message]*keptMessage
	old   map[Message]*keptMessage // the older half: a message that is used again moves to young
}

// keptMessage holds the data of a MessageMemory about one message.
type keptMessage struct{ stored time.Time } // when the message's text was last stored; zero: never

// NewMessageMemory returns an empty MessageMemory, which can select 1,000 new messages immediately.
func NewMessageMemory(clock func() time.Time) *MessageMemory {
	return &MessageMemory{clock: clock, small: rate.NewLimiter(2, 1000), young: make(map[Message]*keptMessage)}
}

// Keep reports whether the store should keep the text of the batch's message and count its sends. After Keep has
// returned true for a message, it returns true for every later batch of the same message.
func (m *MessageMemory) Keep(b *Batch) bool {
	return b.Record && m.KeepSends(b.Message, len(b.Users))
}

// KeepSends reports whether a store should keep the text of an imported message with the given number of merged sends.
// KeepSends follows the rules of Keep.
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

// The method Due reports whether a store should write the text of a remembered message with this batch. For bulk calls,
// Due always returns true; for smaller calls, Due returns true once a minute.
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

// The method "find" returns the data about the message, or nil if the MessageMemory does not contain the message.
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

// The method "add" adds a message to the younger of the two halves of a MessageMemory. If the younger half is full,
// this half becomes the older half, and the MessageMemory drops the former older half.
func (m *MessageMemory) add(message Message, kept *keptMessage) {
	if len(m.young) >= mostKept/2 {
		m.old, m.young = m.young, make(map[Message]*keptMessage)
	}
	m.young[message] = kept
}
