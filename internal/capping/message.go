package capping

import (
	"crypto/sha256"
	"strings"

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

// TokenOf is the token of a message id without a namespace.
func TokenOf(messageID string) Token { return Message{ID: messageID}.Token() }

// BulkUsers is the number of users from which a call's message id is always
// remembered.
const BulkUsers = 100

// MessageMemory decides which message ids a store remembers, so that a person
// who reads a log sees ids and not tokens. Ids of bulk calls (BulkUsers or
// more) always are. Of smaller calls at most 10 a second are, 1,000 in a
// burst: an id for each single user would cost more than the logs.
// It is safe for concurrent use.
type MessageMemory struct{ small *rate.Limiter }

// NewMessageMemory is a memory with a full burst.
func NewMessageMemory() *MessageMemory {
	return &MessageMemory{rate.NewLimiter(10, 1000)}
}

// Keep reports whether the store should remember the batch's message.
func (m *MessageMemory) Keep(b *Batch) bool {
	if !b.Record || b.Message.ID == "" {
		return false
	}
	return len(b.Users) >= BulkUsers || m.small.Allow()
}
