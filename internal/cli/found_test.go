package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/ids"
)

// TestUsersOfAnAudienceAreListed checks that answers about parts, in any order, make one list in the order of the
// store, and that the positions in the answers name the users whom the answers named.
func TestUsersOfAnAudienceAreListed(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64, ids.Text} {
		scheme := ids.New(kind, ids.Key{1})
		var all []string
		for i := range 90 {
			id := fmt.Sprint(i)
			if kind == ids.UUID {
				id = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
			}
			all = append(all, id)
		}
		slices.SortFunc(all, func(a, b string) int {
			x, _ := scheme.Parse([]byte(a))
			y, _ := scheme.Parse([]byte(b))
			if x < y {
				return -1
			}
			return 1
		})
		found := &foundIDs{scheme: scheme}
		list := &IDs{UserList: found}
		packed := func(list ...string) (packed []byte) {
			for _, id := range list {
				packed, _ = scheme.AppendPacked(packed, []byte(id))
			}
			return packed
		}
		texts := func(users *roaring.Bitmap) (texts []string) {
			var to strings.Builder
			require.NoError(t, list.write(&to, users))
			return strings.Fields(to.String())
		}
		allowed := roaring.New()
		for _, part := range []int{2, 0, 1} {
			users := all[30*part : 30*part+30]
			yes, replayed, no, later := users[:10], users[3:5], users[10:25], users[25:]
			r := &client.FilterResult{Waves: []client.Wave{{}}}
			if kind == ids.Text {
				r.AllowedIDs, r.ReplayedIDs, r.UnavailableIDs, r.Waves[0].IDs = yes, replayed, later, no[:4]
				for _, id := range no {
					r.DeniedIDs = append(r.DeniedIDs, api.DenialOfID{UserID: id, Limit: "daily"})
				}
			} else {
				r.AllowedPacked, r.ReplayedPacked, r.UnavailablePacked = packed(yes...), packed(replayed...),
					packed(later...)
				r.DeniedPacked, r.Waves[0].Packed = map[string][]byte{"daily": packed(no...)}, packed(no[:4]...)
			}
			require.NoError(t, found.take(part, r))
			require.Equal(t, yes, texts(r.AllowedBitmap), kind)
			require.Equal(t, replayed, texts(r.ReplayedBitmap))
			require.Equal(t, no, texts(r.DeniedBitmaps["daily"]))
			require.Equal(t, later, texts(r.UnavailableBitmap))
			require.Equal(t, no[:4], texts(r.Waves[0].Bitmap))
			allowed.Or(r.AllowedBitmap)
		}
		require.Equal(t, slices.Concat(all[:10], all[30:40], all[60:70]), texts(allowed))
		require.Equal(t, all, texts(list.all()))
		require.Equal(t, 90, list.Len())
		if kind == ids.UUID {
			position := slices.Collect(found.inOrder(list.all()))[33]
			require.Equal(t, packed(all[33]), list.AppendPacked(nil, int(position)))
			require.ErrorContains(t, found.take(3, &client.FilterResult{AllowedPacked: []byte{1}}),

				"decode the response for part 3 of the audience: "+
					"a list of packed user ids has 1 bytes, but its length must be a multiple of 16 (bytes of one id)")
		}
		if kind == ids.Text {
			require.ErrorContains(t, found.take(3, &client.FilterResult{AllowedIDs: []string{""}}), "is not a text id")
		}
	}
}
