package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"capper/internal/capping"
)

// Scope is the right to make certain calls. No scope includes another one.
type Scope string

// A key can have these scopes.
const (
	ScopeFilter Scope = "filter" // filter and release
	ScopeRead   Scope = "read"   // explain a user; limits and status; metrics on the public listener
	ScopeAdmin  Scope = "admin"  // erase a user; profiles
	ScopeLists  Scope = "lists"  // add users to sets and remove users from sets; read the changes
	ScopeExempt Scope = "exempt" // with filter: calls with enforce false, which limits and most suppressions let pass
	ScopeNone   Scope = ""       // open to everybody: health, readiness, the API's description
)

// Rules hold the API keys and the rates of clients. Nobody may change Rules after they have been published.
type Rules struct {
	Keys  []Key                   // api_keys; without any, everybody who reaches the listener may call
	Rates map[string]capping.Rate // rate_limits.clients: rates by client; other clients have the default
	Rate  capping.Rate            // rate_limits.default; zero: unlimited
	// Pacers is clients.NAME.pacers: the pacers for which the client may ask. A client that is absent may ask for all.
	Pacers map[string][]string
	// Shares is clients.NAME.share and clients.NAME.shares: the shares of pacers that the client may use.
	Shares map[string]Shares
}

// Shares are the shares of pacers that a client may use.
type Shares struct {
	Own string   // share: that of every call that names none; "": none
	May []string // shares: those that calls may name, besides Own
}

// Key is an API key in the form that the configuration stores. A caller sends the key as "Authorization: Bearer
// id.secret".
type Key struct {
	ID     string // id: part of the key before its first dot, unique
	Client string // client: name of the caller; a client has at most two keys, so that keys can be rotated
	// Namespace (namespace) is the namespace of the message ids in the key's calls; "": none. All keys of a client
	// have the same namespace. The same id in two namespaces stands for two messages.
	Namespace string
	SHA256    string  // sha256: hex SHA-256 of the whole key, dot and id included
	Scopes    []Scope // scopes
	// Sets (sets) holds the sets that the key may change and read with the scope lists; none: all sets.
	Sets []string
}

// keysPerClient is the maximum number of valid keys that a client may have at one time.
const keysPerClient = 2

// keyID matches a valid id of an API key.
var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Scopes lists all scopes that a key can have.
func Scopes() []Scope { return []Scope{ScopeFilter, ScopeRead, ScopeAdmin, ScopeLists, ScopeExempt} }

// scopeNames returns all scopes in one line of text.
func scopeNames() string {
	var names []string
	for _, scope := range Scopes() {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// MayPace reports whether a client may ask for permits of a pacer.
func (r *Rules) MayPace(client, pacer string) bool {
	bound, ok := r.Pacers[client]
	return !ok || slices.Contains(bound, pacer)
}

// MayShare reports whether the calls of a client may name a share. Without keys, every call may.
func (r *Rules) MayShare(client, share string) bool {
	shares := r.Shares[client]
	return len(r.Keys) == 0 || share == shares.Own || slices.Contains(shares.May, share)
}

// PacingClients returns the clients with the scope filter that may ask for permits of a pacer, each once.
func (r *Rules) PacingClients(pacer string) (clients []string) {
	for i := range r.Keys {
		key := &r.Keys[i]
		if slices.Contains(key.Scopes, ScopeFilter) && r.MayPace(key.Client, pacer) &&
			!slices.Contains(clients, key.Client) {
			clients = append(clients, key.Client)
		}
	}
	return clients
}

// fault is an error in the configuration of a key.
type fault struct {
	Key   int    // index of the key
	Field string // client, namespace, id, sha256, scopes, scopes[N] or sets; "" for the key as a whole
	Rule  string // the rule and the value found instead
}

func (f fault) Error() string {
	if f.Field == "" {
		return f.Rule
	}
	return f.Field + ": " + f.Rule
}

// faults returns all errors in the configuration of the keys.
func (r *Rules) faults() (faults []fault) {
	for i := range r.Keys {
		for _, fault := range r.Keys[i].Faults() {
			fault.Key = i
			faults = append(faults, fault)
		}
	}
	return append(faults, Conflicts(r.Keys)...)
}

// Faults returns all errors in the key itself, without comparing it with other keys.
func (k *Key) Faults() (faults []fault) {
	add := func(field, format string, args ...any) {
		faults = append(faults, fault{Field: field, Rule: fmt.Sprintf(format, args...)})
	}
	required := func(field, value string) bool {
		if value == "" {
			add(field, "is required")
		}
		return value != ""
	}
	if required("client", k.Client) && !capping.IsName(k.Client) {
		add("client", capping.NameRule, k.Client)
	}
	if k.Namespace != "" && !capping.IsName(k.Namespace) {
		add("namespace", capping.NameRule, k.Namespace)
	}
	if required("id", k.ID) && !keyID.MatchString(k.ID) {
		add("id", "must be 1 to 64 letters, digits, '_' and '-', got %q", k.ID)
	}
	if required("sha256", k.SHA256) {
		if sum, err := hex.DecodeString(k.SHA256); err != nil || len(sum) != sha256.Size {
			add("sha256", "must be the 64 hex digits of a SHA-256")
		}
	}
	if len(k.Scopes) == 0 {
		add("scopes", "must name a scope of %s", scopeNames())
	}
	if k.Namespace != "" && slices.Contains(k.Scopes, ScopeAdmin) {
		add("namespace", "must be absent for a key with the scope admin, which applies to all namespaces (erase, "+
			"reset a pacer, backup), got %q: remove admin from this key and give it to a key of another client "+
			"without a namespace, which imports into one with POST /v1/sends?namespace=%s",
			k.Namespace, k.Namespace)
	}
	for i, scope := range k.Scopes {
		if !slices.Contains(Scopes(), scope) {
			add(fmt.Sprintf("scopes[%d]", i), "must be one of %s, got %q", scopeNames(), scope)
		}
	}
	if len(k.Sets) > 0 && !slices.Contains(k.Scopes, ScopeLists) {
		add("sets", "must be absent for a key without the scope lists, which alone changes sets")
	}
	if slices.Contains(k.Scopes, ScopeExempt) && !slices.Contains(k.Scopes, ScopeFilter) {
		add("scopes", "must include filter together with exempt: exempt alone allows no call")
	}
	return faults
}

// Conflicts returns the errors that arise between several keys, such as repeated ids.
func Conflicts(keys []Key) (faults []fault) {
	ids, sums, perClient, first := map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]Key{}
	for i, key := range keys {
		add := func(field, format string, args ...any) {
			faults = append(faults, fault{Key: i, Field: field, Rule: fmt.Sprintf(format, args...)})
		}
		if ids[key.ID] && key.ID != "" {
			add("", "must be unique: %q is given twice", key.ID)
		}
		ids[key.ID] = true
		if sum := strings.ToLower(key.SHA256); sum != "" {
			if sums[sum] {
				add("", "must be unique: this sha256 is given twice")
			}
			sums[sum] = true
		}
		if perClient[key.Client]++; perClient[key.Client] == keysPerClient+1 && key.Client != "" {
			add("", "must be at most two keys of one client, for rotation; %q has more", key.Client)
		}
		if other, ok := first[key.Client]; !ok {
			first[key.Client] = key
		} else if key.Namespace != other.Namespace && key.Client != "" {
			add("namespace", "must be the namespace of the other key of the client, %q, got %q: otherwise the new "+
				"key would record separate sends",
				other.Namespace, key.Namespace)
		}
	}
	return faults
}
