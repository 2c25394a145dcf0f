package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// Archive reads the audit records of one location. An Archive is safe for concurrent use.
type Archive struct {
	at    objects.Source
	parse func(raw []byte) (*capping.Policy, error)
	ids   audit.IDs

	mu       sync.Mutex
	entries  map[objects.Object]*Entry
	policies map[string]*capping.Policy
}

// New returns an archive that reads audit records from the given location. The function "parse" decodes a stored
// policy, like config.ParsePolicy. New reads nothing.
func New(at objects.Source, parse func(raw []byte) (*capping.Policy, error)) *Archive {
	return &Archive{at: at, parse: parse, entries: map[objects.Object]*Entry{}, policies: map[string]*capping.Policy{}}
}

// The method Of sets the kind and key of the user ids that the archive expects in the audit records, and returns the
// archive. Without a call of Of, the archive expects dense ids (32-bit numbers). If an audit file has user ids of
// another kind or with another key, the archive returns a *FileError that wraps an *audit.OtherIDsError.
func (a *Archive) Of(ids audit.IDs) *Archive {
	a.ids = ids
	return a
}

// IDs returns the kind and key of the user ids in the records that the archive reads.
func (a *Archive) IDs() audit.IDs { return a.ids }

// ReadIDs returns the kind (such as UUID) and the hash key of the user ids at an audit location. The ids at an audit
// location are dense (32-bit numbers), unless a document at the location names another kind.
func ReadIDs(ctx context.Context, at objects.Source) (audit.IDs, error) {
	raw, err := at.Read(ctx, audit.IDsKey, objects.MaxDocumentBytes)
	if errors.Is(err, objects.ErrNotFound) {
		return audit.IDs{}, nil
	}
	if err != nil {
		return audit.IDs{}, err
	}
	ids, err := audit.UnsealIDs(raw)
	if err != nil {
		return ids, &FileError{audit.IDsKey, err}
	}
	return ids, nil
}

// Name returns the name of the audit location in the form in which the user wrote it.
func (a *Archive) Name() string { return a.at.Name() }

// Source returns the audit location that the archive reads.
func (a *Archive) Source() objects.Source { return a.at }

// ErrNoPolicy reports that the audit location has no policy of a configuration version. ErrNoPolicy wraps
// objects.ErrNotFound.
var ErrNoPolicy = fmt.Errorf("the audit lacks the limits of this configuration version: %w",
	objects.ErrNotFound)

// Policy returns the policy (the limits) of a configuration version, or ErrNoPolicy if the audit location does not have
// this policy. Callers must not change the policy.
func (a *Archive) Policy(ctx context.Context, version string) (*capping.Policy, error) {
	a.mu.Lock()
	policy := a.policies[version]
	a.mu.Unlock()
	if policy != nil {
		return policy, nil
	}
	policy, err := a.readPolicy(ctx, version)
	if errors.Is(err, objects.ErrNotFound) {
		return nil, fmt.Errorf("policy %q: %w", version, ErrNoPolicy)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", version, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policies[version] = policy
	return policy, nil
}

func (a *Archive) readPolicy(ctx context.Context, version string) (*capping.Policy, error) {
	if !isVersion(version) {
		return nil, fmt.Errorf("configuration version must consist of letters, digits, '-' or '_', got %q", version)
	}
	raw, err := a.at.Read(ctx, audit.PolicyKey(version), objects.MaxDocumentBytes)
	if err != nil {
		return nil, err
	}
	if raw, err = audit.OpenPolicy(raw); err != nil {
		return nil, err
	}
	policy, err := a.parse(raw)
	if err != nil {
		return nil, err
	}
	if policy.Version != version {
		return nil, fmt.Errorf("policy belongs to version %q", policy.Version)
	}
	return policy, nil
}

// isVersion reports whether a text has the form of a configuration version. Without the check of the form, the version
// in a damaged record could name an object outside the folder "policies".
func isVersion(text string) bool {
	return text != "" && !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
}

// An Instance holds the numbers of audit files and records that one service instance wrote, and the period.
type Instance struct {
	Name        string
	Files       int
	Records     uint64 // number of records in complete files
	Lost        uint64 // number of lost records, according to the instance
	First, Last capping.Instant
	Open        bool // the instance is writing a file, or was when it died
}

// Instances returns every service instance that wrote to the audit location, sorted by name.
func (a *Archive) Instances(ctx context.Context) ([]Instance, error) {
	listed, err := a.list(ctx, Query{})
	if err = errors.Join(append(listed.faults, err)...); err != nil {
		return nil, err
	}
	byName := map[string]*Instance{}
	of := func(name string) *Instance {
		if byName[name] == nil {
			byName[name] = &Instance{Name: name, First: capping.Never}
		}
		return byName[name]
	}
	for _, entry := range listed.entries {
		i := of(entry.Instance)
		i.Files++
		i.Records += entry.Records
		i.Lost += entry.Lost
		i.First, i.Last = min(i.First, entry.From), max(i.Last, entry.To)
	}
	for _, open := range listed.open {
		of(open.instance).Open = true
	}
	var list []Instance
	for _, i := range byName {
		list = append(list, *i)
	}
	slices.SortFunc(list, func(a, b Instance) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
