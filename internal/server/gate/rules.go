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

// A Scope is the right of an API key to make certain calls. No scope includes another scope.
type Scope string

// An operator can give an API key every scope except ScopeNone.
const (
	ScopeFilter Scope = "filter" // filter and release users
	ScopeRead   Scope = "read"   // explain users; read limits, status and, on the public listener, metrics
	ScopeAdmin  Scope = "admin"  // erase users; read profiles
	ScopeLists  Scope = "lists"  // add users to sets, remove users from sets, and read these changes
	ScopeExempt Scope = "exempt" // with "filter": "enforce": false, which ignores limits and most suppressions
	ScopeNone   Scope = ""       // no key needed: /healthz, /readyz, the description of the API
)

// Rules holds the API keys and the rates of clients. Nobody may change Rules that have been passed to New or SetAccess.
type Rules struct {
	Keys  []Key                   // api_keys; none: everybody who can reach the listener may call
	Rates map[string]capping.Rate // rate_limits.clients: rates by client; default for other clients: Rate
	Rate  capping.Rate            // rate_limits.default; zero: no limit
	// Pacers is clients.NAME.pacers: the pacers from which each client may request permits. A client without an entry
	// may use all pacers.
	Pacers map[string][]string
	// The type Shares is clients.NAME.share and clients.NAME.shares: the shares of pacers that each client may use.
	Shares map[string]Shares
}

// The type Shares lists the shares (named, reserved parts of a pacer's permits) that a client may use.
type Shares struct {
	Own string   // share: the share of calls that name no share; "": no share
	May []string // shares: other shares that calls may name
}

// A Key is an API key in the form that the configuration contains. A caller sends the API key in the header
// "Authorization: Bearer id.secret".
type Key struct {
	ID     string // id: part of the key before the first dot, unique
	Client string // client: name of the caller; a client has at most two keys, which allows key rotation
	// Namespace (namespace) is the namespace of message ids in calls with this key; "" means no namespace. All keys of
	// a client have the same namespace. The same message id in two namespaces belongs to two different messages.
	Namespace string
	SHA256    string  // sha256: hex SHA-256 of the whole key, including id and dot
	Scopes    []Scope // scopes
	// Sets (sets) lists the sets that the key may change and read with the scope lists. An empty list means all sets.
	Sets []string
}

// keysPerClient is the maximum number of API keys that a client may have at the same time.
const keysPerClient = 2

// keyID matches a valid id of an API key.
var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Scopes returns all scopes that an API key can have.
func Scopes() []Scope { return []Scope{ScopeFilter, ScopeRead, ScopeAdmin, ScopeLists, ScopeExempt} }

// scopeNames returns the names of all scopes, separated by commas.
func scopeNames() string {
	var names []string
	for _, scope := range Scopes() {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// MayPace reports whether a client may request permits from a pacer.
func (r *Rules) MayPace(client, pacer string) bool {
	bound, ok := r.Pacers[client]
	return !ok || slices.Contains(bound, pacer)
}

// MayShare reports whether calls of a client may request permits from the named share (reserved part) of a pacer. If
// no API keys are configured, MayShare returns true.
func (r *Rules) MayShare(client, share string) bool {
	shares := r.Shares[client]
	return len(r.Keys) == 0 || share == shares.Own || slices.Contains(shares.May, share)
}

// PacingClients returns the distinct clients that have an API key with the scope "filter" and may request permits from
// the pacer.
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

// A fault is an error in the configuration of an API key.
type fault struct {
	Key   int    // index of the key
	Field string // client, namespace, id, sha256, scopes, scopes[N] or sets; "": the whole key
	Rule  string // the broken rule and the actual value
}

func (f fault) Error() string {
	if f.Field == "" {
		return f.Rule
	}
	return f.Field + ": " + f.Rule
}

// The method "faults" returns all errors in the configuration of the API keys.
func (r *Rules) faults() (faults []fault) {
	for i := range r.Keys {
		for _, fault := range r.Keys[i].Faults() {
			fault.Key = i
			faults = append(faults, fault)
		}
	}
	return append(faults, Conflicts(r.Keys)...)
}

// Faults returns all errors in the configuration of one API key, but does not compare the key with other keys.
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

// Conflicts returns the configuration errors that concern several API keys, such as two keys with the same id.
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
