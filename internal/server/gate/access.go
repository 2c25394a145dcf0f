package gate

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// A Control checks API calls against the Rules: the API keys and the rates of clients. A Control is safe for concurrent
// use.
type Control struct {
	rules Rules
	byID  map[string]*liveKey
}

type liveKey struct {
	Key
	sum [sha256.Size]byte
}

// New returns a Control for the rules. If the rules contain faults, the error of New lists every fault.
func New(rules Rules) (*Control, error) {
	var faults []error
	for _, fault := range rules.faults() {
		faults = append(faults, fmt.Errorf("api key %d (id %q): %w", fault.Key, rules.Keys[fault.Key].ID, fault))
	}
	if err := rules.Rate.Check(); err != nil {
		faults = append(faults, fmt.Errorf("default rate: %w", err))
	}
	for client, rate := range rules.Rates {
		if err := rate.Check(); err != nil {
			faults = append(faults, fmt.Errorf("rate of client %q: %w", client, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	c := &Control{rules: rules, byID: make(map[string]*liveKey, len(rules.Keys))}
	for _, key := range rules.Keys {
		live := &liveKey{Key: key}
		_, _ = hex.Decode(live.sum[:], []byte(key.SHA256)) // New has checked the text
		c.byID[key.ID] = live
	}
	return c, nil
}

// HasKeys reports whether API keys are configured, so that calls need a key.
func (c *Control) HasKeys() bool { return len(c.byID) > 0 }

// RateOf returns the rate of the client. If the rate of a client is zero, the server does not limit the client.
func (c *Control) RateOf(client string) capping.Rate {
	if rate, ok := c.rules.Rates[client]; ok {
		return rate
	}
	return c.rules.Rate
}

// Clients returns the distinct names of all clients.
func (c *Control) Clients() []string {
	return c.ClientsWith(ScopeFilter, ScopeRead, ScopeAdmin, ScopeLists)
}

// ClientsWith returns the distinct names of the clients that have an API key with at least one of the scopes. If no API
// keys are configured, ClientsWith returns OpenClient.
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

// OpenClient is the client name of all calls when no API keys are configured.
const OpenClient = "anonymous"

// Caller identifies the client that makes an API call, and the API key of the call.
type Caller struct {
	Client    string
	Namespace string // namespace of the key; "": no namespace
	Key       string // id of the key; "": no keys are configured
}

// Caller returns the caller to whom the API key in an Authorization header belongs. The API key must have at least
// one of the given scopes.
func (c *Control) Caller(authorization string, scopes ...Scope) (Caller, error) {
	if !c.HasKeys() || slices.Contains(scopes, ScopeNone) {
		return Caller{Client: OpenClient}, nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Caller{}, wire.NewFailure(
			api.CodeUnauthorized,
			"an API key is required: send the header Authorization: "+
				"Bearer ID.SECRET",
		)
	}
	id, _, _ := strings.Cut(token, ".")
	key := c.byID[id]
	var want [sha256.Size]byte // checking an unknown key id takes as long as checking a wrong secret
	if key != nil {
		want = key.sum
	}
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || key == nil {
		return known(key), wire.NewFailure(api.CodeUnauthorized, "the API key is not valid")
	}
	return key.with(scopes)
}

// The type "inside" is the context key for the API key of a signed-in visitor. For a visitor who has signed in, the
// console makes API calls within the process.
type inside struct{}

// The function Inside returns a context for an API call that the console makes within the process for a visitor. The
// argument "key" is the id of the API key with which the visitor signed in, or "" if no keys are configured. The
// context of a request over the network contains no id of an API key.
func Inside(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, inside{}, key)
}

// CallerOf returns the caller of the request, or an error if the caller's key has none of the scopes. If the console
// makes the call for a visitor, the caller is the visitor, and the current scopes of the visitor's API key apply. If
// the call comes over the network, the key of the caller is in the Authorization header.
func (c *Control) CallerOf(r *http.Request, scopes ...Scope) (Caller, error) {
	if !c.HasKeys() || slices.Contains(scopes, ScopeNone) {
		return Caller{Client: OpenClient}, nil
	}
	id, ok := r.Context().Value(inside{}).(string)
	if !ok {
		return c.Caller(r.Header.Get("Authorization"), scopes...)
	}
	key := c.byID[id]
	if key == nil {
		return Caller{}, wire.NewFailure(api.CodeUnauthorized, "the API key is not valid")
	}
	return key.with(scopes)
}

// The method Seal derives a secret from each API key for the given purpose. The returned map contains the secret of
// each API key under the id of the key. A new API key has a new secret. All service instances derive equal secrets from
// an API key, so that sessions are valid at every instance.
func (c *Control) Seal(purpose string) map[string][sha256.Size]byte {
	secrets := make(map[string][sha256.Size]byte, len(c.byID))
	for id, key := range c.byID {
		mac := hmac.New(sha256.New, key.sum[:])
		mac.Write([]byte(purpose))
		secrets[id] = [sha256.Size]byte(mac.Sum(nil))
	}
	return secrets
}

// The method May reports whether the API key with the given id has the scope. If no API keys are configured, May
// returns true.
func (c *Control) May(id string, scope Scope) bool {
	key := c.byID[id]
	return !c.HasKeys() || key != nil && slices.Contains(key.Scopes, scope)
}

// NamespaceOf returns the namespace of the API key with the given id, or "" if the key has no namespace.
func (c *Control) NamespaceOf(id string) string {
	if key := c.byID[id]; key != nil {
		return key.Namespace
	}
	return ""
}

// MayChange returns nil if the API key with the given id may change and read the set (scope "lists"). If no API keys
// are configured, MayChange returns nil.
func (c *Control) MayChange(id, set string) error {
	key := c.byID[id]
	if !c.HasKeys() || key != nil && (len(key.Sets) == 0 || slices.Contains(key.Sets, set)) {
		return nil
	}
	return wire.NewFailure(api.CodeForbidden, "the API key %q may not use the set %q: "+
		"an operator can add the set to the key's sets under server.api_keys", id, wire.Clip([]byte(set)))
}

// MayPace returns nil if the client may request permits from all of the given pacers. If the client may not use one
// of the pacers, MayPace returns an error that names the first such pacer.
func (c *Control) MayPace(client string, pacers []string) error {
	for i, pacer := range pacers {
		if !c.rules.MayPace(client, pacer) {
			return wire.FieldFailure(api.CodeForbidden, fmt.Sprintf("pacers[%d]", i), "the client %q may not use the "+
				"pacer %q: an operator can add the pacer to clients.%s.pacers", client, pacer, client)
		}
	}
	return nil
}

// MayShare returns nil if calls of the client may request permits from the named share (reserved part) of a pacer.
func (c *Control) MayShare(client, share string) error {
	if share == "" || c.rules.MayShare(client, share) {
		return nil
	}
	return wire.FieldFailure(api.CodeForbidden, "share", "the client %q may not use the share %q: an operator can add "+
		"the share to clients.%s.shares", client, share, client)
}

// ShareOf returns the default share (reserved part of a pacer's permits) of the client, for calls that name no share.
// The result "" means no share.
func (c *Control) ShareOf(client string) string { return c.rules.Shares[client].Own }

// The method "with" returns the caller to whom the API key belongs, or an error if the key has none of the scopes.
func (k *liveKey) with(scopes []Scope) (caller Caller, err error) {
	if !slices.ContainsFunc(scopes, func(scope Scope) bool { return slices.Contains(k.Scopes, scope) }) {
		err = wire.NewFailure(api.CodeForbidden, "the API key %q lacks the scope %s, which this call requires", k.ID,
			quoted(scopes))
	}
	return Caller{k.Client, k.Namespace, k.ID}, err
}

// The function "known" returns the key id of a refused API key for the log, if the key id is configured. Logs must not
// contain any other part of a refused API key, because a caller may have invented the text or sent it by mistake.
func known(key *liveKey) Caller {
	if key == nil {
		return Caller{}
	}
	return Caller{Key: key.ID}
}

// The function "quoted" returns the scopes as text, such as "read" or "lists".
func quoted(scopes []Scope) string {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = strconv.Quote(string(scope))
	}
	return strings.Join(texts, " or ")
}
