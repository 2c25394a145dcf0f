package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Scope is a right to call. Scopes do not include one another.
type Scope string

// The scopes.
const (
	ScopeFilter Scope = "filter" // filter and release
	ScopeRead   Scope = "read"   // explain a user; limits, status and, on the public listener, metrics
	ScopeAdmin  Scope = "admin"  // erase a user; profiles
	scopeNone   Scope = ""       // open to everybody: health, readiness, the API's description
)

// Access says who may call and how fast. It is not changed after it has been
// handed over.
type Access struct {
	Keys  []Key
	Rates map[string]Rate // by client; a client without one has the default
	Rate  Rate            // the default; zero: unlimited
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

// access is an Access made ready for look-ups.
type access struct {
	Access
	byID map[string]*liveKey
}

type liveKey struct {
	Key
	sum [sha256.Size]byte
}

// newAccess validates a. It reports every fault.
func newAccess(a Access) (*access, error) {
	ready := &access{Access: a, byID: make(map[string]*liveKey, len(a.Keys))}
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
	if err := a.Rate.check(); err != nil {
		faults = append(faults, fmt.Errorf("default rate: %w", err))
	}
	for client, rate := range a.Rates {
		if err := rate.check(); err != nil {
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

// clientsWith are the clients of keys with the scope.
func (a *access) clientsWith(scope Scope) (clients []string) {
	for _, key := range a.Keys {
		if slices.Contains(key.Scopes, scope) {
			clients = append(clients, key.Client)
		}
	}
	return clients
}

// openClient is the client of all calls where no keys are configured.
const openClient = "anonymous"

// caller is who a call comes from.
type caller struct{ client, namespace, key string }

// caller is who sends the Authorization header, which must have the scope.
func (a *access) caller(authorization string, scope Scope) (caller, error) {
	if len(a.byID) == 0 || scope == scopeNone {
		return caller{client: openClient}, nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return caller{}, fail(CodeUnauthorized, "an API key is needed: send the header Authorization: Bearer ID.SECRET")
	}
	id, _, _ := strings.Cut(token, ".")
	key := a.byID[id]
	var want [sha256.Size]byte // an unknown id costs the same as a wrong secret
	if key != nil {
		want = key.sum
	}
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || key == nil {
		return known(key), fail(CodeUnauthorized, "the API key is not valid")
	}
	if !slices.Contains(key.Scopes, scope) {
		return caller{key.Client, key.Namespace, key.ID}, fail(CodeForbidden, "the API key %q does not have the scope %q that this call needs", key.ID, scope)
	}
	return caller{key.Client, key.Namespace, key.ID}, nil
}

// known names, of a key that was refused, what is in the configuration: what a
// caller made up, or sent by mistake, is not for logs.
func known(key *liveKey) caller {
	if key == nil {
		return caller{}
	}
	return caller{key: key.ID}
}
