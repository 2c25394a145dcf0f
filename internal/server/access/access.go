package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/failure"
)

// Scope is a right to call. Scopes do not include one another.
type Scope string

// The scopes.
const (
	ScopeFilter Scope = "filter" // filter and release
	ScopeRead   Scope = "read"   // explain a user; limits, status and, on the public listener, metrics
	ScopeAdmin  Scope = "admin"  // erase a user; profiles
	ScopeNone   Scope = ""       // open to everybody: health, readiness, the API's description
)

// Rules say who may call and how fast. They are not changed after they have
// been handed over.
type Rules struct {
	Keys  []Key
	Rates map[string]capping.Rate // by client; a client without one has the default
	Rate  capping.Rate            // the default; zero: unlimited
}

// Key is an API key as the configuration keeps it. The key itself is the text
// id.secret, sent as "Authorization: Bearer id.secret".
type Key struct {
	ID     string // part of the key before its first dot
	Client string // who calls; a client has at most two keys, so that keys can be rotated
	// Namespace is that of the message ids of the key's calls; "": none. The same
	// id in two namespaces is two messages.
	Namespace string
	SHA256    string // hex SHA-256 of the whole key, dot and id included
	Scopes    []Scope
}

// keysPerClient is how many keys of a client may live at one time.
const keysPerClient = 2

// Control applies Rules. It is safe for concurrent use.
type Control struct {
	rules Rules
	byID  map[string]*liveKey
}

type liveKey struct {
	Key
	sum [sha256.Size]byte
}

// New validates the rules. It reports every fault.
func New(a Rules) (*Control, error) {
	ready := &Control{rules: a, byID: make(map[string]*liveKey, len(a.Keys))}
	var faults []error
	perClient := map[string]int{}
	for i, key := range a.Keys {
		live, err := newLiveKey(key)
		if err == nil && ready.byID[key.ID] != nil {
			err = errors.New("another key has the same id")
		}
		if perClient[key.Client]++; err == nil && perClient[key.Client] > keysPerClient {
			err = fmt.Errorf("client %q has more than %d keys", key.Client, keysPerClient)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("api key %d (id %q): %w", i, key.ID, err))
			continue
		}
		ready.byID[key.ID] = live
	}
	if err := a.Rate.Check(); err != nil {
		faults = append(faults, fmt.Errorf("default rate: %w", err))
	}
	for client, rate := range a.Rates {
		if err := rate.Check(); err != nil {
			faults = append(faults, fmt.Errorf("rate of client %q: %w", client, err))
		}
	}
	return ready, errors.Join(faults...)
}

func newLiveKey(key Key) (*liveKey, error) {
	live := &liveKey{Key: key}
	switch {
	case key.ID == "" || strings.ContainsAny(key.ID, ". "):
		return nil, errors.New("the id must be set and hold neither dot nor space")
	case key.Client == "":
		return nil, errors.New("the client is missing")
	case !utf8.ValidString(key.Namespace):
		return nil, errors.New("the namespace is not valid UTF-8")
	case len(key.Scopes) == 0:
		return nil, errors.New("it has no scope: filter, read, admin")
	}
	for _, scope := range key.Scopes {
		if !slices.Contains([]Scope{ScopeFilter, ScopeRead, ScopeAdmin}, scope) {
			return nil, fmt.Errorf("%q is no scope: filter, read, admin", scope)
		}
	}
	sum, err := hex.DecodeString(key.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, errors.New("sha256 must be 64 hex digits")
	}
	copy(live.sum[:], sum)
	return live, nil
}

// HasKeys reports whether calls need a key.
func (c *Control) HasKeys() bool { return len(c.byID) > 0 }

// RateOf is the client's rate; zero: unlimited.
func (c *Control) RateOf(client string) capping.Rate {
	if rate, ok := c.rules.Rates[client]; ok {
		return rate
	}
	return c.rules.Rate
}

// Clients are all clients, each once.
func (c *Control) Clients() []string {
	return c.ClientsWith(ScopeFilter, ScopeRead, ScopeAdmin)
}

// ClientsWith are the clients that may make calls of one of the scopes, each
// once. Without keys that is OpenClient.
func (c *Control) ClientsWith(scopes ...Scope) (clients []string) {
	if !c.HasKeys() {
		return []string{OpenClient}
	}
	for _, key := range c.rules.Keys {
		may := slices.ContainsFunc(scopes, func(scope Scope) bool { return slices.Contains(key.Scopes, scope) })
		if may && !slices.Contains(clients, key.Client) {
			clients = append(clients, key.Client)
		}
	}
	return clients
}

// OpenClient is the client of all calls where no keys are configured.
const OpenClient = "anonymous"

// Caller is who a call comes from.
type Caller struct {
	Client    string
	Namespace string // of the key; "": none
	Key       string // its id; "" without keys
}

// Caller is who sends the Authorization header, which must have the scope.
func (c *Control) Caller(authorization string, scope Scope) (Caller, error) {
	if !c.HasKeys() || scope == ScopeNone {
		return Caller{Client: OpenClient}, nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Caller{}, failure.New(api.CodeUnauthorized, "an API key is needed: send the header Authorization: Bearer ID.SECRET")
	}
	id, _, _ := strings.Cut(token, ".")
	key := c.byID[id]
	var want [sha256.Size]byte // an unknown id costs the same as a wrong secret
	if key != nil {
		want = key.sum
	}
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || key == nil {
		return known(key), failure.New(api.CodeUnauthorized, "the API key is not valid")
	}
	if !slices.Contains(key.Scopes, scope) {
		return Caller{key.Client, key.Namespace, key.ID}, failure.New(api.CodeForbidden, "the API key %q does not have the scope %q that this call needs", key.ID, scope)
	}
	return Caller{key.Client, key.Namespace, key.ID}, nil
}

// known names, of a key that was refused, what is in the configuration: what a
// caller made up, or sent by mistake, is not for logs.
func known(key *liveKey) Caller {
	if key == nil {
		return Caller{}
	}
	return Caller{Key: key.ID}
}
