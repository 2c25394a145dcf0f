package api

import (
	"encoding/json"
	"time"
)

// MaxSetUsers is the maximum number of users in one call that changes a set. If a call that changes a set names users
// by ids, the bound MaxUserIDs also applies to the number of users.
const MaxSetUsers = 100_000

// SetChange is the body of POST /v1/sets/{set}/members, which adds users to a set or removes users from the set. A
// SetChange names at least one user, and must not both add and remove the same user. In the URL path, a "/" in the name
// of the set is written as %2F.
type SetChange struct {
	Add          []uint32 `json:"add,omitempty"` // either Add or AddBitmap
	AddBitmap    *Bitmap  `json:"add_bitmap,omitempty"`
	Remove       []uint32 `json:"remove,omitempty"` // either Remove or RemoveBitmap
	RemoveBitmap *Bitmap  `json:"remove_bitmap,omitempty"`
	// AddImages and RemoveImages replace Add and Remove for ids that are not dense. Each element is the image of an id
	// (a 64-bit number) as 16 hexadecimal digits, such as MemberChangeOfID.Image.
	AddImages    []string `json:"add_images,omitempty"`
	RemoveImages []string `json:"remove_images,omitempty"`
	// At is the time when the users asked for the change. If At is nil, the time of the call applies. If calls change
	// the same user several times, the change with the latest At takes precedence, whatever the order of the calls.
	At *time.Time `json:"at,omitempty"`
}

// SetChanged is the response to a call that changed a set. When a client receives a SetChanged, the service has
// stored every change of the call durably. If the service may not have stored some changes, the response is an Error
// with CodeUnavailable that lists the users of these changes.
type SetChanged struct {
	Set        string    `json:"set"`
	At         time.Time `json:"at"` // time from which the changes take effect
	Added      int       `json:"added"`
	Removed    int       `json:"removed"`
	Superseded int       `json:"superseded"` // users whose change has no effect because of a later change or build
}

// MarshalJSON writes At with milliseconds.
func (c SetChanged) MarshalJSON() ([]byte, error) {
	type plain SetChanged
	return json.Marshal(struct {
		plain
		At instant `json:"at"`
	}{plain(c), instant(c.At)})
}

// The type Sets is the response to GET /v1/sets. The type Sets lists the sets in the published data that the service
// uses now, and the configured sets that no build has published.
type Sets struct {
	Generation string    `json:"generation"` // "": none is loaded
	Sets       []SetInfo `json:"sets"`       // in the order of their names
}

// SetInfo describes a set: its users from the last build, and the live changes (changes by API calls) since the last
// build.
type SetInfo struct {
	Name       string     `json:"name"`
	Users      *uint64    `json:"users,omitempty"` // users in the generation; nil: the generation lacks the set
	AsOf       *time.Time `json:"as_of,omitempty"` // time up to which the build contains changes; nil: unknown
	Live       *LiveSet   `json:"live,omitempty"`  // nil: only builds change the set
	Suppressed bool       `json:"suppressed"`      // the set is in the setting suppress
	Configured bool       `json:"configured_live"` // the set exists even while no generation contains it
	OnlyBuilds bool       `json:"only_builds"`     // calls cannot change the set
}

// MarshalJSON writes AsOf with milliseconds.
func (s SetInfo) MarshalJSON() ([]byte, error) {
	type plain SetInfo
	return json.Marshal(struct {
		plain
		AsOf *instant `json:"as_of,omitempty"`
	}{plain(s), (*instant)(s.AsOf)})
}

// LiveSet describes the live changes (changes by API calls) of a set.
type LiveSet struct {
	Additions int `json:"additions"` // users added by their latest change, if it takes precedence over the build
	Removals  int `json:"removals"`  // users removed by their latest change, if it takes precedence over the build
	// Superseded counts the users whose change has no effect, because the build in use is newer; the service deletes
	// these changes soon. 0 from older services.
	Superseded int        `json:"superseded"`
	Oldest     *time.Time `json:"oldest"` // time of the oldest addition or removal; nil: there is none
	Newest     *time.Time `json:"newest"`
	Max        int        `json:"max"` // maximum number of all changes, including superseded changes (max_live)
}

// MarshalJSON writes the times with milliseconds.
func (l LiveSet) MarshalJSON() ([]byte, error) {
	type plain LiveSet
	return json.Marshal(struct {
		plain
		Oldest *instant `json:"oldest"`
		Newest *instant `json:"newest"`
	}{plain(l), (*instant)(l.Oldest), (*instant)(l.Newest)})
}

// SetMembers is the response to GET /v1/sets/{set}/members: a page of the changes that API calls made to a set, in the
// order of the users.
type SetMembers struct {
	Set     string         `json:"set"`
	Changes []MemberChange `json:"changes"`
	Next    *string        `json:"next"` // value of the parameter "cursor" for the next page; nil: no more
}

// SetMemberStrings is a page of the changes that API calls made to a set, in a deployment whose ids are uint64, uuid or
// text. SetMemberStrings lists the changes in the order of the users' id images (64-bit hashes of ids).
type SetMemberStrings struct {
	Set     string             `json:"set"`
	Changes []MemberChangeOfID `json:"changes"`
	Next    *string            `json:"next"`
}

// MemberChangeOfID works like MemberChange, but names the user by a string, in a deployment whose ids are uint64, uuid
// or text.
type MemberChangeOfID struct {
	// UserID is the canonical id. "" means that the generation in use does not contain the id; the field Image then
	// names the user.
	UserID string `json:"user_id,omitempty"`
	// Image is the image of the id (64-bit hash by which the store identifies the user) in 16 hexadecimal digits. Image
	// is "" if UserID is set.
	Image      string    `json:"image,omitempty"`
	Change     string    `json:"change"`
	At         time.Time `json:"at"`
	By         string    `json:"by"`
	Superseded bool      `json:"superseded,omitempty"`
}

// MarshalJSON writes At with milliseconds.
func (m MemberChangeOfID) MarshalJSON() ([]byte, error) {
	type plain MemberChangeOfID
	return json.Marshal(struct {
		plain
		At instant `json:"at"`
	}{plain(m), instant(m.At)})
}

// MemberChange is a live change: the latest change of a user in a set by an API call.
type MemberChange struct {
	UserID uint32    `json:"user_id"`
	Change string    `json:"change"` // ChangeAdded or ChangeRemoved
	At     time.Time `json:"at"`     // time from which the change takes effect
	By     string    `json:"by"`     // client of the call
	// Superseded means that the build in use is newer than the change, so the build determines whether the user is in
	// the set.
	Superseded bool `json:"superseded,omitempty"`
}

// MarshalJSON writes At with milliseconds.
func (m MemberChange) MarshalJSON() ([]byte, error) {
	type plain MemberChange
	return json.Marshal(struct {
		plain
		At instant `json:"at"`
	}{plain(m), instant(m.At)})
}

// ChangeAdded and ChangeRemoved are the kinds of a live change (change of a set by an API call).
const (
	ChangeAdded   = "added"
	ChangeRemoved = "removed"
)

// LiveMembership is a change by an API call that overrides, for one user, the published build of a set.
type LiveMembership struct {
	Set    string    `json:"set"`
	Change string    `json:"change"` // ChangeAdded or ChangeRemoved
	Since  time.Time `json:"since"`
	By     string    `json:"by"` // client of the call
}

// MarshalJSON writes Since with milliseconds.
func (m LiveMembership) MarshalJSON() ([]byte, error) {
	type plain LiveMembership
	return json.Marshal(struct {
		plain
		Since instant `json:"since"`
	}{plain(m), instant(m.Since)})
}
