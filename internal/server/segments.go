package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"capper/client/api"
	"capper/internal/segments/publish"
	"capper/internal/server/wire"
)

// listSegments serves GET /v1/segments.
func (s *Server) listSegments(c *call) error {
	generation, err := s.finder.Pin.Generation("generation", c.parameters["generation"])
	if err != nil {
		return err
	}
	list := wire.SegmentList(generation)
	if named := s.audiences(s.capper.Policy()); len(named.Names()) > 0 {
		list.Audiences = map[string]string{}
		for _, name := range named.Names() {
			list.Audiences[name] = named.Text(name)
		}
	}
	return writeJSON(c.w, list)
}

// The method lookup serves POST /v1/segments/lookup.
func (s *Server) lookup(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeLookup(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience, s.capper.Policy(), true); err != nil {
		return err
	}
	name := r.Generation
	if r.Taken != nil {
		name = r.Taken.Generation
	}
	generation, err := s.finder.Pin.Generation("generation", name)
	if err != nil {
		return err
	}
	body.KeepUsers(r.Bytes())
	p, err := s.enter(c, &r.Audience, lookupBytes(r, generation.Names()))
	if err != nil {
		return err
	}
	defer p.Close()
	body.Close()
	numbers := make([]uint32, len(r.Users))
	generation.Numbers(r.Users, numbers)
	found, err := wire.MembershipOf(generation, numbers, r.Sets)
	if err != nil {
		return err
	}
	s.writeAnswer(c, p, wire.EncodeLookup(p.Buffer(lookupBytes(r, generation.Names())), r, found))
	return nil
}

// lookupBytes returns the approximate size in bytes of the response to a segment lookup.
func lookupBytes(r *wire.LookupRequest, names []string) int64 {
	if r.Form != wire.InLists {
		return 1024 + int64(3+2*len(r.Sets))*int64(len(r.Users)) + r.GivenBytes()
	}
	longest := len(api.NoSegment)
	for _, name := range names {
		longest = max(longest, len(name))
	}
	perUser := len(`{"user_id":,"segment":"","sets":[]}`) + r.IDBytes() + longest
	for _, name := range r.Sets {
		perUser += (len(name) + 3) / 2 // assumes that few users are in all sets
	}
	return 1024 + int64(perUser)*int64(len(r.Users)) + r.GivenBytes()
}

// These constants are the default number of users in a page of set members, and the maximum JSON size of a dense id
// (32-bit number).
const (
	usualPage = 10_000
	idBytes   = len("4294967295,")
)

// The method "members" serves GET /v1/segments/{name}/members.
func (s *Server) members(c *call) error {
	from, n, err := wire.PageOf(c.parameters, s.ids, usualPage, s.bounds.JSONUsers)
	if err != nil {
		return err
	}
	m, err := s.membersOf(c)
	if err != nil {
		return err
	}
	size := 1024 + wire.NameBytes(s.ids)*int64(n)
	memory := size + 4*int64(n)
	if s.ids != nil {
		memory += size // memory for the ids before encoding
	}
	p, err := s.budgets.Enter(c.holder, n, memory)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.admit(c, "max", n); err != nil {
		return err
	}
	page, err := m.Page(from, n)
	if err != nil {
		return err
	}
	s.writeAnswer(c, p, wire.EncodeMembers(p.Buffer(size), page))
	return nil
}

// membersOf returns the members of the segment or set that the call names, and keeps their segments generation in
// memory for the next page.
func (s *Server) membersOf(c *call) (*wire.Members, error) {
	generation, err := s.finder.Pin.Pinned("generation", c.parameters["generation"])
	if err != nil {
		return nil, err
	}
	return wire.MembersOf(generation, c.id)
}

// generationHeader is the response header with the name of the segments generation (published version), for responses
// whose body has no field for this name.
const generationHeader = "X-Segments-Generation"

// segmentBitmap serves GET and HEAD /v1/segments/{name}/bitmap.
func (s *Server) segmentBitmap(c *call) error {
	if s.ids != nil {
		return wire.NewFailure(api.CodeInvalidRequest, "this deployment's ids are %s, and bitmaps hold dense ids: use "+
			"GET /v1/segments/{name}/members", s.ids.Kind())
	}
	m, err := s.membersOf(c)
	if err != nil {
		return err
	}
	h := c.w.Header()
	tag := strconv.Quote(m.Generation())
	set := func() {
		h[generationHeader] = []string{m.Generation()}
		h["ETag"] = []string{tag}
		h.Set("Cache-Control", "no-cache") // caches must ask whether the response has changed
	}
	if matches(c.r.Header.Values("If-None-Match"), tag) {
		set()
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	p, err := s.budgets.Enter(c.holder, 1, m.MostBytes())
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.findContext(c)
	defer cancel()
	found, err := s.finder.Bitmap(ctx, c.holder, m)
	if err != nil {
		return err
	}
	set()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(found.Bytes())))
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		p.WriteShared(c.w, s.bounds.MinRate, found.Bytes())
	}
	return nil
}

// The function "matches" reports whether the header If-None-Match contains the entity tag of the response. The function
// "matches" uses the weak comparison of RFC 9110, because proxies that compress responses mark entity tags as weak.
func matches(headers []string, tag string) bool {
	for given := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == tag {
			return true
		}
	}
	return false
}

// listGenerations serves GET /v1/generations.
func (s *Server) listGenerations(c *call) error {
	ctx, cancel := s.findContext(c)
	defer cancel()
	list, more, err := s.history.List(ctx)
	if err != nil {
		return ofSource(ctx, err)
	}
	return writeJSON(c.w, wire.Generations(s.capper.Segments().Generation(), list, more))
}

// generationChanges serves GET /v1/generations/{generation}/changes.
func (s *Server) generationChanges(c *call) error {
	since, given := c.parameters["since"]
	if !given {
		return wire.Invalid("since", "is required: name the generation to compare with")
	}
	ctx, cancel := context.WithTimeout(c.ctx, comparingTime*s.bounds.CallTimeout)
	defer cancel()
	changes, err := s.history.Changes(ctx, since, c.id)
	var missing *publish.NoGenerationError
	switch {
	case errors.As(err, &missing):
		return wire.NewFailure(api.CodeNotFound, "generation %s does not exist: GET /v1/generations lists all",
			wire.Clip([]byte(missing.Generation)))
	case err != nil:
		return ofSource(ctx, err)
	}
	return writeJSON(c.w, wire.Changes(changes))
}

// comparingTime is the time limit for comparing two segments generations (published versions), as a multiple of the
// usual time limit of a call.
const comparingTime = 4

// ofSource converts an error that occurred while the server read published segments to a failure for the caller.
func ofSource(ctx context.Context, err error) *wire.Failure {
	message := "the location of the segments could not be read: the log shows the reason"
	if ctx.Err() != nil {
		message = "the location of the segments could not answer in time: try again"
	}
	f := wire.NewFailure(api.CodeUnavailable, "%s", message)
	f.Cause = err
	return f
}
