package audit

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/ids"
)

// IDs describes the kind and key of the user ids in an audit file. The zero value stands for dense ids.
type IDs struct {
	Kind  ids.Kind
	Check string // the check of kind and key, see ids.Scheme.Check; "" for dense ids
}

// IDsOf returns the IDs that describe a scheme. A nil scheme stands for dense ids.
func IDsOf(scheme *ids.Scheme) IDs {
	if scheme == nil || scheme.Kind() == ids.Dense {
		return IDs{}
	}
	return IDs{Kind: scheme.Kind(), Check: scheme.Check()}
}

// Dense reports whether the ids are dense.
func (i IDs) Dense() bool { return i.Kind == ids.Dense }

// String returns the kind of the ids, followed by the check if the ids are not dense.
func (i IDs) String() string {
	if i.Dense() {
		return i.Kind.String()
	}
	return fmt.Sprintf("%s with the check %s", i.Kind, i.Check)
}

// format returns the version of the file format that supports the ids.
func (i IDs) format() int {
	if i.Dense() {
		return Format
	}
	return FormatImages
}

// OtherIDsError reports audit records whose ids have another kind or key than the ids of the reader or the writer.
type OtherIDsError struct{ Have, Want IDs }

func (e *OtherIDsError) Error() string {
	return fmt.Sprintf("the records have ids of the kind %s, and the ids of this deployment are %s", e.Have, e.Want)
}

// Same returns an *OtherIDsError if the ids differ from want.
func (i IDs) Same(want IDs) error {
	if i == want {
		return nil
	}
	return &OtherIDsError{Have: i, Want: want}
}

var checkRule = regexp.MustCompile(`^[0-9a-f]{8}$`)

// parseIDs returns the IDs for the name of a kind and a check of the key. The kind must not be dense.
func parseIDs(kind, check string) (IDs, error) {
	k, err := ids.ParseKind(kind)
	if err != nil || k == ids.Dense || !checkRule.MatchString(check) {
		return IDs{}, fmt.Errorf("ids of the audit have an invalid kind %q or check %q", kind, check)
	}
	return IDs{Kind: k, Check: check}, nil
}

// IDsKey is the key of the document with the kind and check of a location's ids. Locations of dense ids do not have
// this document. The document lies below OpenPrefix, because earlier versions of capper ignore objects there that are
// not records files.
const IDsKey = OpenPrefix + "ids.json"

// idsDocument is the JSON form of IDs.
type idsDocument struct {
	Kind  string `json:"kind"`
	Check string `json:"check_of_key"`
}

// Seal encodes the document with the kind and check of a location's ids.
func (i IDs) Seal() ([]byte, error) { return Seal(idsDocument{i.Kind.String(), i.Check}) }

// UnsealIDs decodes the document with the kind and check of a location's ids.
func UnsealIDs(raw []byte) (IDs, error) {
	var d idsDocument
	if err := Unseal(raw, &d); err != nil {
		return IDs{}, err
	}
	return parseIDs(d.Kind, d.Check)
}

// Count returns the number of users in the group.
func (g *Group) Count() int {
	if g.Users != nil {
		return int(g.Users.Cardinality())
	}
	return len(g.Images)
}

// Has reports whether the user is in the group.
func (g *Group) Has(user capping.UserID) bool {
	if g.Users != nil {
		return user <= capping.MaxDense && g.Users.Contains(capping.Dense(user))
	}
	_, found := slices.BinarySearch(g.Images, user)
	return found
}

// All yields the users of the group in ascending order.
func (g *Group) All() iter.Seq[capping.UserID] {
	if g.Users == nil {
		return slices.Values(g.Images)
	}
	return func(yield func(capping.UserID) bool) {
		for id := range g.Users.All() {
			if !yield(capping.UserID(id)) {
				return
			}
		}
	}
}

// AppendUsers appends the users of the group in ascending order to dst.
func (g *Group) AppendUsers(dst []capping.UserID) []capping.UserID {
	dst = slices.Grow(dst, g.Count())
	for user := range g.All() {
		dst = append(dst, user)
	}
	return dst
}

// NewErasure returns an erasure of the given users, whose ids are described by i.
func NewErasure(i IDs, users []capping.UserID, at time.Time) Erasure {
	e := Erasure{Users: users, At: at}
	if !i.Dense() {
		e.Kind, e.Check = i.Kind.String(), i.Check
	}
	return e
}

// IDs returns the kind and key of the erased users' ids.
func (e *Erasure) IDs() (IDs, error) {
	if e.Kind == "" && e.Check == "" {
		return IDs{}, nil
	}
	return parseIDs(e.Kind, e.Check)
}
