package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/server"
	"capper/internal/testkit"
)

// someIDs returns n ids of a kind.
func someIDs(kind ids.Kind, n int) (list []string) {
	for i := range n {
		switch kind {
		case ids.UUID:
			list = append(list, fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(i)*2654435761, i))
		case ids.Uint64:
			list = append(list, fmt.Sprint(uint64(i)<<40|1<<63))
		default:
			list = append(list, fmt.Sprintf("user %d \"a/b\" é", i))
		}
	}
	return list
}

// byImage returns ids in the order of their images.
func byImage(t testing.TB, sch *ids.Scheme, list []string) []string {
	t.Helper()
	images := map[string]uint64{}
	for _, id := range list {
		image, err := sch.Parse([]byte(id))
		require.NoError(t, err)
		images[id] = image
	}
	return slices.SortedFunc(slices.Values(list), func(a, b string) int {
		if images[a] < images[b] {
			return -1
		}
		return 1
	})
}

// membersOf reads pages of a segment or set until the last, each from the current generation.
func (s *service) membersOf(name string, size int, between func()) (got []string) {
	s.t.Helper()
	path := fmt.Sprintf("/v1/segments/%s/members?max=%d", name, size)
	for next := ""; ; {
		r := s.get(path + next)
		require.Equal(s.t, http.StatusOK, r.status, string(r.body))
		page := decodeAs[api.MemberStrings](s.t, r.body)
		require.Equal(s.t, name, page.Name)
		require.LessOrEqual(s.t, len(page.UserIDs), size)
		got = append(got, page.UserIDs...)
		if page.Next == nil {
			return got
		}
		require.Equal(s.t, page.UserIDs[len(page.UserIDs)-1], *page.Next)
		next = "&after=" + url.QueryEscape(*page.Next)
		between()
	}
}

// TestPagesOfMembersOfOtherIDs checks pages of ids that are not dense. Their order is the same in every generation, so
// that a page after a publish goes on where the page before it ended.
func TestPagesOfMembersOfOtherIDs(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			sch, all := scheme(t, kind), someIDs(kind, 300)
			vip, optedOut := all[:100], all[50:60]
			s, g := newServiceOfNumbers(t, sch, numberedSnapshot(t, sch, vip, optedOut, true, 0))
			for _, size := range []int{1, 7, 100, 1000} {
				require.Equal(t, byImage(t, sch, vip), s.membersOf("vip", size, func() {}))
			}
			require.Equal(t, byImage(t, sch, optedOut), s.membersOf("opted-out", 3, func() {}))

			got := s.membersOf("vip", 30, func() {
				if len(g.list) == 1 {
					g.list = append(g.list, numberedSnapshot(t, sch, all[:200], optedOut, true, 1))
				}
			})
			ordered := byImage(t, sch, vip)
			later := byImage(t, sch, all[:200])
			require.Equal(t, append(ordered[:30:30], later[slices.Index(later, ordered[29])+1:]...), got)
			pinned := decodeAs[api.MemberStrings](t, s.get("/v1/segments/vip/members?generation="+
				g.list[0].Generation()+"&after="+url.QueryEscape(all[299])).body)
			require.Equal(t, g.list[0].Generation(), pinned.Generation)
			place := slices.Index(byImage(t, sch, append(slices.Clone(vip), all[299])), all[299])
			require.Equal(t, ordered[place:], pinned.UserIDs, "after an id in no file")
			require.Nil(t, pinned.Next)
		})
	}
	sch := scheme(t, ids.UUID)
	s := newNumberedService(t, sch, []string{ann, ben, cat}, []string{cat}, true)
	spelt := s.get("/v1/segments/vip/members?after=" + url.QueryEscape("{"+strings.ToUpper(ann)+"}"))
	require.Equal(t, s.get("/v1/segments/vip/members?after="+ann).body, spelt.body)
	requireRefused(t, s.get("/v1/segments/vip/members?after=7"), http.StatusBadRequest, "invalid_request",
		badBody{field: "after", message: `after: is not a UUID: "7" has 1 hexadecimal digit`})
	requireRefused(t, s.get("/v1/segments/vip/members?max=0"), http.StatusBadRequest, "invalid_request",
		badBody{field: "max", message: "0 is not a number from 1"})
	require.Equal(t, http.StatusNotFound, s.get("/v1/segments/nobody/members").status)
	for kind, known := range map[ids.Kind][]string{ids.UUID: {ann}, ids.Text: {"a"}} {
		nameless := newNumberedService(t, scheme(t, kind), known, known, false)
		requireRefused(t, nameless.get("/v1/segments/vip/members"), http.StatusBadRequest, "invalid_request",
			badBody{message: "does not contain its ids (segmentbuild build --no-names): POST /v1/audience/count " +
				"counts its users"})
	}
	numbers := newNumberedService(t, scheme(t, ids.Uint64), []string{"7"}, []string{"7"}, false)
	require.Equal(t, []string{"7"}, numbers.membersOf("vip", 10, func() {}), "an image of uint64 leads back to the id")
}

// namedChanges returns the changes of the set opted-out as texts: by id, or by image.
func (s *service) namedChanges(query string) (list []string, next string) {
	s.t.Helper()
	r := s.get("/v1/sets/opted-out/members" + query)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	page := decodeAs[api.SetMemberStrings](s.t, r.body)
	for _, c := range page.Changes {
		require.NotEqual(s.t, c.UserID == "", c.Image == "", "one of both names the user")
		require.Equal(s.t, "anonymous", c.By)
		require.WithinDuration(s.t, startOfTest, c.At, time.Second)
		list = append(list, c.UserID+c.Image+" "+c.Change)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return list, next
}

// TestChangesOfOtherIDsAreNamed checks the list of live changes: users by their ids where the generation leads back to
// them, and by their images otherwise. Calls change sets by such images.
func TestChangesOfOtherIDsAreNamed(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			sch, all := scheme(t, kind), someIDs(kind, 10)
			s, g := newServiceOfNumbers(t, sch, numberedSnapshot(t, sch, all[:5], all[5:6], true, 0))
			s.changeSet("opted-out", fields{"add": all[3:9], "remove": all[:1]})
			image := func(id string) string {
				image, err := sch.Parse([]byte(id))
				require.NoError(t, err)
				return fmt.Sprintf("%016x", image)
			}
			var want []string
			for _, id := range byImage(t, sch, append(slices.Clone(all[3:9]), all[0])) {
				name, change := id, " added"
				if id == all[0] {
					change = " removed"
				}
				if place := slices.Index(all, id); place > 5 && kind != ids.Uint64 {
					name = image(id)
				}
				want = append(want, name+change)
			}
			got, _ := s.namedChanges("")
			require.Equal(t, want, got)
			var paged []string
			for next := "?limit=2"; next != ""; {
				page, cursor := s.namedChanges(next)
				paged, next = append(paged, page...), ""
				if cursor != "" {
					next = "?limit=2&cursor=" + cursor
				}
				g.list = append(g.list, numberedSnapshot(t, sch, all[:5], all[5:6], true, len(g.list)))
			}
			require.Equal(t, want, paged)

			changed := s.changeSet("opted-out", fields{"remove_images": []string{image(all[8]), image(all[7]),
				image(all[8])}, "add": all[1:2]})
			require.Equal(t, []int{1, 2}, []int{changed.Added, changed.Removed})
			decided := filterAs[api.FilterStrings](s, fields{"record": false, "user_ids": all[6:9]})
			require.Equal(t, all[7:9], decided.Allowed)
			require.Equal(t, 1, s.changeSet("opted-out", fields{"add_images": []string{image(all[8])}}).Added)
			require.Equal(t, all[7:8], filterAs[api.FilterStrings](s, fields{"record": false,
				"user_ids": all[6:9]}).Allowed)

			g.list = append(g.list, numberedSnapshot(t, sch, all, all[5:6], kind == ids.UUID, len(g.list)))
			got, _ = s.namedChanges("")
			for _, text := range got {
				require.Equal(t, kind == ids.Text, len(strings.Fields(text)[0]) == 16 && kind != ids.Uint64, text)
			}
		})
	}
}

func TestRefusedChangesByImage(t *testing.T) {
	t.Parallel()
	clock, store := testkit.NewClockAt(startOfTest), &changeStore{lists: live.NewOfImages(0)}
	sch := scheme(t, ids.UUID)
	store.Store, store.clock = openStoreOf(t, sch, clock.Now), clock.Now
	s := newIDServiceOver(t, sch, store, clock, nil, func(cfg *server.Config) {
		cfg.Sets = func() live.Rules { return live.Rules{"opted-out": {Live: true}} }
	})
	const one = "00000000000000ff"
	for body, want := range map[string]badBody{
		`{"add_images":"` + one + `"}`:                         {field: "add_images", message: "is not an array of id"},
		`{"add_images":["` + one + `",7]}`:                     {field: "add_images[1]", message: "7 is not a string"},
		`{"add_images":["00000000000000FF"]}`:                  {field: "add_images[0]", message: "16 hexadecimal digits in lower case"},
		`{"remove_images":["ff"]}`:                             {field: "remove_images[0]", message: `"ff" is not an id`},
		`{"add_images":["` + one + `" "` + one + `"]}`:         {message: "',' or ']'"},
		`{"add_images":[]}`:                                    {field: "add_images", message: "the lists are empty"},
		`{"add_images":["` + one + `"],"add":["` + ann + `"]}`: {field: "add", message: "add_images and add are both given"},
		`{"add_images":["` + one + `"],"remove_images":["` + one + `"]}`: {field: "remove_images",
			message: "user " + one + " is also in add_images"},
	} {
		requireRefused(t, s.post("/v1/sets/opted-out/members", body), http.StatusBadRequest, "invalid_request", want)
	}
	image, err := sch.Parse([]byte(ann))
	require.NoError(t, err)
	store.fail(errors.New("no replica"), 0xff, capping.UserID(image))
	r := s.post("/v1/sets/opted-out/members", fields{"add_images": []string{one}, "remove": []string{ann, ben}})
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	f := decodeAs[api.Error](t, r.body)
	require.Equal(t, []string{one}, f.UnavailableImages)
	require.Equal(t, []string{ann}, f.UnavailableIDs)
	require.Empty(t, f.Unavailable)
	requireRefused(t, s.get("/v1/sets/opted-out/members?cursor=7"), http.StatusBadRequest, "invalid_request",
		badBody{field: "cursor", message: "7 is not the value of next in an earlier response"})

	dense, _ := newChangeService(t)
	requireRefused(t, dense.post("/v1/sets/opted-out/members", fields{"remove_images": []string{one}}),
		http.StatusBadRequest, "invalid_request", badBody{field: "remove_images",
			message: "this deployment's ids are dense (32-bit numbers): use remove"})
}

// TestSamplesOfOtherIDs checks that the cells of a salt split an audience, in counts, previews and filter calls.
func TestSamplesOfOtherIDs(t *testing.T) {
	t.Parallel()
	sch, all := scheme(t, ids.UUID), someIDs(ids.UUID, 400)
	s, g := newServiceOfNumbers(t, sch, numberedSnapshot(t, sch, all[:300], all[300:], true, 0))
	cell := func(from, to int) fields { return fields{"from": from, "to": to, "salt": "s"} }
	counted := func(sample any) int {
		r := s.post("/v1/audience/count", fields{"audience": "vip", "sample": sample, "channel": "push"})
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		count := decodeAs[api.AudienceCount](t, r.body)
		require.EqualValues(t, count.Users, count.Preview.Requested)
		return int(count.Users)
	}
	taken := func(message string, sample any) []string {
		return unpacked(sch, filterAs[api.FilterPacked](s, fields{"message_id": message, "audience": "vip",
			"sample": sample}).AllowedPacked)
	}
	require.Equal(t, 300, counted(fields{"percent": 100, "salt": "s"}))
	first, second := taken("a", cell(0, 50)), taken("b", cell(50, 100))
	require.Equal(t, []int{len(first), len(second)}, []int{counted(cell(0, 50)), counted(cell(50, 100))})
	require.InDelta(t, 150, len(first), 50)
	require.Equal(t, slices.Sorted(slices.Values(all[:300])), slices.Sorted(slices.Values(append(first, second...))))
	g.list = append(g.list, numberedSnapshot(t, sch, all[:300], all[:1], true, 1))
	require.Equal(t, first, taken("c", cell(0, 50)), "the same users in the next generation")
	r := s.post("/v1/forecast", fields{"audience": "vip", "sample": cell(0, 50)})
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	require.Equal(t, len(first), decodeAs[api.Forecast](t, r.body).Users)
}
