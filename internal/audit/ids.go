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

// IDs describes the kind and key of the user ids in an audit file. The zero value of IDs means dense ids (32-bit
// numbers).
type IDs struct {
	Kind  ids.Kind
	Check string // check word of kind and key, see ids.Scheme.Check; "" for dense ids
}

// IDsOf describes the scheme (kind and key) of user ids. A nil scheme means dense ids (32-bit numbers).
func IDsOf(scheme *ids.Scheme) IDs {
	if scheme == nil || scheme.Kind() == ids.Dense {
		return IDs{}
	}
	return IDs{Kind: scheme.Kind(), Check: scheme.Check()}
}

// Dense reports whether the user ids are dense (32-bit numbers).
func (i IDs) Dense() bool { return i.Kind == ids.Dense }

// String returns the kind of the user ids and, if the ids are not dense 32-bit numbers, the check word of the ids' key.
func (i IDs) String() string {
	if i.Dense() {
		return i.Kind.String()
	}
	return fmt.Sprintf("%s with the check %s", i.Kind, i.Check)
}

// The method format returns the version of the audit file format for this kind of user ids.
func (i IDs) format() int {
	if i.Dense() {
		return Format
	}
	return FormatImages
}

// OtherIDsError reports that the user ids in audit records have another kind or key than the ids of the reader or the
// writer.
type OtherIDsError struct{ Have, Want IDs }

func (e *OtherIDsError) Error() string {
	return fmt.Sprintf("the records have ids of the kind %s, and the ids of this deployment are %s", e.Have, e.Want)
}

// The method Same returns an *OtherIDsError if the kind or the key of the user ids differs from the argument "want".
func (i IDs) Same(want IDs) error {
	if i == want {
		return nil
	}
	return &OtherIDsError{Have: i, Want: want}
}

var checkRule = regexp.MustCompile(`^[0-9a-f]{8}$`)

// parseIDs returns the IDs for the name of a kind of user ids and the check word of the ids' key. The kind must not be
// "dense".
func parseIDs(kind, check string) (IDs, error) {
	k, err := ids.ParseKind(kind)
	if err != nil || k == ids.Dense || !checkRule.MatchString(check) {
		return IDs{}, fmt.Errorf(
			"the audit's description of its user ids is not valid: kind %q, fingerprint of the hash key %q",
			kind, check)
	}
	return IDs{Kind: k, Check: check}, nil
}

// IDsKey is the object key of the document about the user ids at an audit location. The document holds the kind of the
// ids, and the check word of the ids' key. If the ids are dense (32-bit numbers), the location has no document about
// its user ids. IDsKey lies below OpenPrefix, where earlier versions of capper ignore objects that are not audit files.
const IDsKey = OpenPrefix + "ids.json"

// idsDocument is the JSON form of IDs (kind and key of user ids).
type idsDocument struct {
	Kind  string `json:"kind"`
	Check string `json:"check_of_key"`
}

// The method Seal encodes the document that describes the user ids of an audit location.
func (i IDs) Seal() ([]byte, error) { return Seal(idsDocument{i.Kind.String(), i.Check}) }

// UnsealIDs decodes the document that describes the user ids of an audit location.
func UnsealIDs(raw []byte) (IDs, error) {
	var d idsDocument
	if err := Unseal(raw, &d); err != nil {
		return IDs{}, err
	}
	return parseIDs(d.Kind, d.Check)
}

// The method Count returns the number of users in a group of an audit record.
func (g *Group) Count() int {
	if g.Users != nil {
		return int(g.Users.Cardinality())
	}
	return len(g.Images)
}

// The method Has reports whether the user is in the group of the audit record.
func (g *Group) Has(user capping.UserID) bool {
	if g.Users != nil {
		return user <= capping.MaxDense && g.Users.Contains(capping.Dense(user))
	}
	_, found := slices.BinarySearch(g.Images, user)
	return found
}

// The method All yields the users of a group of an audit record in ascending order.
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

// AppendUsers appends the users of a group of an audit record to dst, in ascending order.
func (g *Group) AppendUsers(dst []capping.UserID) []capping.UserID {
	dst = slices.Grow(dst, g.Count())
	for user := range g.All() {
		dst = append(dst, user)
	}
	return dst
}

// NewErasure returns an erasure of the given users. The argument i of NewErasure describes the kind and key of the
// users' ids.
func NewErasure(i IDs, users []capping.UserID, at time.Time) Erasure {
	e := Erasure{Users: users, At: at}
	if !i.Dense() {
		e.Kind, e.Check = i.Kind.String(), i.Check
	}
	return e
}

// IDs returns the kind and key of the user ids in the erasure.
func (e *Erasure) IDs() (IDs, error) {
	if e.Kind == "" && e.Check == "" {
		return IDs{}, nil
	}
	return parseIDs(e.Kind, e.Check)
}
