package publish

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// An acceptance is an operator's approval of one change of one segment or set. For example, an operator may approve
// that 57 % of the users leave.
type acceptance struct {
	Name   string
	Change string // text of the operator: "-57%", "-57% +3%", "-90", "vanishes", "empties"
	Reason string

	state string // Vanishes, empties, or empty
	loss  *share
	gain  *share
}

// A share is the approved number of users who join or leave a set. The number is absolute, or a percentage of the set's
// users before the change.
type share struct {
	value   float64
	digits  int // decimal places of a percentage
	percent bool
}

// ParseAcceptance parses an operator's approval in the form "NAME: CHANGE", and returns an acceptance with the given
// reason.
func ParseAcceptance(text, reason string) (*acceptance, error) {
	name, change, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf(
			"%q: must have the form NAME: CHANGE, such as 'opted-out: -57%%' or 'tz/Asia/Singapore: vanishes'",
			text)
	}
	return NewAcceptance(strings.TrimSpace(name), strings.TrimSpace(change), reason)
}

// NewAcceptance checks the name of the set, the approved change and the reason, and returns an acceptance.
func NewAcceptance(name, change, reason string) (*acceptance, error) {
	a := &acceptance{Name: name, Change: change, Reason: strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd")}
	switch {
	case segments.CheckName(name) != nil && segments.CheckSetName(name) != nil:
		return nil, fmt.Errorf("%q: must be the name of a segment or set", name)
	case a.Reason == "" || len(a.Reason) > segments.MaxAcceptedReason:
		return nil, fmt.Errorf("reason has %d bytes, but must have 1 to %d bytes",
			len(a.Reason), segments.MaxAcceptedReason)
	case len(change) > segments.MaxAcceptedChange:
		return nil, fmt.Errorf("change has %d bytes, but must have at most %d bytes",
			len(change), segments.MaxAcceptedChange)
	}
	return a, a.parseChange()
}

var errChange = errors.New("must be a share of users who leave (such as -57%), join (+57%) or both ('-57% +3%'), " +
	"a number of users (such as -90), or one of the words 'vanishes' and 'empties'")

func (a *acceptance) parseChange() error {
	if a.Change == Vanishes || a.Change == empties {
		a.state = a.Change
		return nil
	}
	terms := strings.Fields(a.Change)
	for _, term := range terms {
		to := &a.loss
		if strings.HasPrefix(term, "+") {
			to = &a.gain
		}
		s, err := parseShare(term)
		if err != nil || *to != nil {
			return fmt.Errorf("change %q: %w", a.Change, errChange)
		}
		*to = s
	}
	if len(terms) == 0 {
		return fmt.Errorf("change %q: %w", a.Change, errChange)
	}
	return nil
}

// parseShare parses one part of an approved change, such as "-57%" or "+90": a sign and a number, with or without a per
// cent sign.
func parseShare(term string) (*share, error) {
	number, percent := strings.CutSuffix(strings.TrimLeft(term, "+-"), "%")
	whole, fraction, point := strings.Cut(number, ".")
	value, err := strconv.ParseFloat(number, 64)
	switch digits := whole + fraction; {
	case err != nil, len(term)-len(strings.TrimLeft(term, "+-")) != 1, strings.Trim(digits, "0123456789") != "",
		value == 0, point && (!percent || fraction == ""):
		return nil, errChange
	}
	return &share{value: value, digits: len(fraction), percent: percent}, nil
}

// The method "is" reports whether a number of users equals the approved share (number or percentage) of all users in
// the set. Before the comparison, the method rounds the real percentage to the number of digits in the approved
// percentage.
func (s *share) is(users, whole uint64) bool {
	if !s.percent {
		return float64(users) == s.value
	}
	if whole == 0 || users == 0 {
		return false
	}
	return math.Abs(segments.RoundPercent(percent(users, whole), s.digits)-s.value) < math.Pow(10,
		-float64(s.digits))/2
}

// The method "matches" reports whether the operator's approval is an approval of the build's change c.
func (a *acceptance) matches(c *Change) bool {
	switch {
	case a.state != "":
		return c.State == a.state
	case c.State != changed && c.State != empties:
		return false
	}
	return (a.loss == nil || a.loss.is(c.Removed, c.Before)) && (a.gain == nil || a.gain.is(c.Added, c.Before))
}

// coversLoss reports whether the operator's approval lets users leave the segment or set.
func (a *acceptance) coversLoss() bool { return a.state != "" || a.loss != nil }

// The method "rest" returns the part of the change c to which the operator's approval does not apply. The guard still
// judges the part without an approval.
func (a *acceptance) rest(c Change) Change {
	if a.coversLoss() {
		c.Before, c.Removed = c.Before-c.Removed, 0
	}
	if a.gain != nil {
		c.After, c.Added = c.After-c.Added, 0
	}
	if c.State = changed; c.Added+c.Removed == 0 {
		c.State = Same
	}
	c.Percent = percent(c.Added+c.Removed, c.Before)
	return c
}

// AcceptError reports approvals by the operator that do not match the changes of a build.
type AcceptError struct {
	Faults []string
	// If the live segment or set already equals the result of the build, Live is the name of the live generation.
	Live string
}

func (e *AcceptError) Error() string { return "not published: " + strings.Join(e.Faults, "\n  ") }

// Suggest returns the text for the flag --accept by which an operator would approve the change, such as "opted-out:
// -57%". If no text can approve the change, Suggest returns "".
func Suggest(c *Change) string {
	switch c.State {
	case Vanishes, empties:
		return c.Name() + ": " + c.State
	case changed:
		return c.Name() + ": " + c.Words()
	}
	return ""
}

// The map "accepted" contains the operator's approvals that match real changes, by the name of the segment or set.
type accepted map[string]*acceptance

// The method "accept" finds the real change for each of the operator's approvals in Bounds.Accept. If an approval
// matches no change, the method "accept" returns an error.
func (b *Bounds) accept(f *Findings, before *segments.Manifest) (accepted, error) {
	found, wrong := accepted{}, &AcceptError{}
	fault := func(text string, args ...any) { wrong.Faults = append(wrong.Faults, fmt.Sprintf(text, args...)) }
	for i := range b.Accept {
		a := &b.Accept[i]
		switch c := f.change(a.Name); {
		case usedBy(before, a):
			f.Used = append(f.Used, a.text())
		case c == nil:
			fault("the acceptance %q: segment or set %q is neither live nor in this build", a.text(), a.Name)
			if a.state == Vanishes {
				wrong.Live = before.Generation
			}
		case found[a.Name] != nil:
			fault("the acceptance %q: %s is accepted twice", a.text(), c.What())
		case !a.matches(c):
			fault("%s", a.differs(c))
			if c.State == Same {
				wrong.Live = before.Generation
			}
		default:
			found[a.Name] = a
		}
	}
	if len(wrong.Faults) > 0 {
		return nil, wrong
	}
	return found, nil
}

// The method "change" returns the change of the segment or set with the given name. If neither of the two compared
// generations (published versions) has this segment or set, the method "change" returns nil.
func (f *Findings) change(name string) *Change {
	for _, list := range [][]Change{f.Changes, f.Sets} {
		if i := slices.IndexFunc(list, func(c Change) bool { return c.Name() == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// The method "rest" returns the parts of the changes to which no approval by the operator applies. The guard still
// judges the parts without an approval.
func (found accepted) rest(changes []Change) []Change {
	rest := slices.Clone(changes)
	for i := range rest {
		if a := found[rest[i].Name()]; a != nil {
			rest[i] = a.rest(rest[i])
		}
	}
	return rest
}

// The method "record" converts the operator's approvals that match real changes to their form in the manifest.
func (found accepted) record(f *Findings, before *segments.Manifest, is *Candidate) (list []segments.Accepted) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		a, c := found[name], f.change(name)
		one := segments.Accepted{Set: c.Set, Segment: c.Segment, FromSHA256: sumIn(before, name),
			ToSHA256: is.users(name),
			Before:   c.Before, Change: a.Change, Reason: a.Reason}
		if a.coversLoss() {
			one.Removed = c.Removed
		}
		list = append(list, one)
	}
	return list
}

func (a *acceptance) text() string { return a.Name + ": " + a.Change }

// The method "differs" returns an error text with the approved change and the real change of a segment or set.
func (a *acceptance) differs(c *Change) string {
	real := fmt.Sprintf("has the same %d users in the live generation and in this build", c.After)
	switch c.State {
	case Vanishes:
		real = fmt.Sprintf("vanishes, with %d users", c.Before)
	case appears:
		real = fmt.Sprintf("is new, with %d users", c.After)
	case fills:
		real = fmt.Sprintf("had no users and now has %d", c.After)
	case empties:
		real = fmt.Sprintf("becomes empty: all of its %d users leave", c.Before)
	case changed:
		real = fmt.Sprintf("changes by %s: %d of %d users leave, %d join", c.Words(), c.Removed, c.Before, c.Added)
	}
	text := fmt.Sprintf("the acceptance %q does not match the change: %s %s", a.text(), c.What(), real)
	if right := Suggest(c); right != "" {
		text += fmt.Sprintf(" (--accept %q)", right)
	}
	return text
}

// usedBy reports whether the manifest of an earlier generation (published version) already contains this approval by
// the operator. An approval is valid for only one publish.
func usedBy(before *segments.Manifest, a *acceptance) bool {
	return slices.ContainsFunc(before.Accepted, func(r segments.Accepted) bool {
		return (r.Set == a.Name || r.Segment == a.Name) && r.Change == a.Change && r.Reason == a.Reason
	})
}

func sumIn(m *segments.Manifest, name string) string {
	for _, s := range m.Entries() {
		if s.Name == name {
			return m.Users(s)
		}
	}
	return ""
}

// acceptedAfter reports whether an operator approved a change of the segment or set after the generation "earlier"
// (published version) was created.
func acceptedAfter(live, earlier *segments.Manifest, name string) bool {
	return slices.ContainsFunc(live.Accepted, func(a segments.Accepted) bool {
		return (a.Set == name || a.Segment == name) && a.At.After(earlier.CreatedAt)
	})
}

// The function "fell" counts users who were in some of the earlier segments, but are in no segment of the candidate
// (built but unpublished generation). The function in the argument "passes" selects the earlier segments.
func fell(passes func(name string) bool, before *segments.Generation, is *Candidate) uint64 {
	var was []*bitmap.Bitmap
	for i, s := range before.Manifest.Segments {
		if passes(s.Name) {
			was = append(was, before.Bitmaps[i])
		}
	}
	if len(was) == 0 {
		return 0
	}
	all, _, both := bitmap.Unions(was, is.Bitmaps)
	return all - both
}
