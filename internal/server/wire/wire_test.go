package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/capping"
)

// TestEveryFieldOfARequestIsRead checks that the decoders know exactly the fields of the wire types.
func TestEveryFieldOfARequestIsRead(t *testing.T) {
	t.Parallel()
	names := func(body any) []string { return fieldsOf(reflect.TypeOf(body)) }
	all := append(append(names(api.FilterRequest{}), names(api.PermitsRequest{})...), "sets", "summary",
		"MESSAGE_ID", "Permits", "Audience")
	for _, call := range []struct {
		body any
		read func([]byte) error
	}{
		{api.FilterRequest{}, func(body []byte) error { _, err := DecodeFilter(body, testBounds); return err }},
		{api.ReleaseRequest{}, func(body []byte) error { _, err := DecodeRelease(body, testBounds); return err }},
		{api.LookupRequest{}, func(body []byte) error { _, err := DecodeLookup(body, testBounds); return err }},
		{api.AudienceCountRequest{}, func(body []byte) error { _, err := DecodeCount(body, testBounds); return err }},
		{api.ForecastRequest{}, func(body []byte) error { _, err := DecodeForecast(body, testBounds); return err }},
		{api.PermitsRequest{}, func(body []byte) error { _, err := DecodePermits(body); return err }},
	} {
		for _, name := range all {
			err := call.read([]byte(`{"` + name + `":null}`))
			require.Error(t, err)
			known := slices.Contains(names(call.body), name)
			require.Equal(t, known, !strings.Contains(err.Error(), "no such field"), "%T: %s: %v", call.body, name, err)
		}
	}
}

// TestAnUnknownFieldIsAnsweredWithKnownOnes checks that the error for an unknown field names all fields of the call.
func TestAnUnknownFieldIsAnsweredWithKnownOnes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"user_id": 3}`: "user_id: this call has no such field; its fields are pacers, permits, max_wait, request_id, " +
			"message_id, key, share, lease",
		`{"Permits": 3}`: "Permits: this call has no such field: field names are lower case",
	} {
		_, err := DecodePermits([]byte(body))
		require.EqualError(t, err, "invalid_request: "+want)
	}
	_, err := DecodeTitle([]byte(`{"text": "a"}`))
	require.ErrorContains(t, err, "its fields are title")
}

// TestAMissingValueIsNamed checks the errors for a comma too many and for a field without a value.
func TestAMissingValueIsNamed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"pacers": ["a",], "permits": 1}`: "pacers[1]: a missing value before ']' is not a string",
		`{"pacers": ["a"], "permits":}`:    "permits: a missing value before '}' is not a number of permits (0 to 100000)",
	} {
		_, err := DecodePermits([]byte(body))
		require.EqualError(t, err, "invalid_request: "+want)
	}
}

// TestRequestsAreTheWireTypes checks that the decoder reads the output of encoding/json for a wire type correctly.
func TestRequestsAreTheWireTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sent := api.FilterRequest{
			MessageID: rapid.StringN(1, 20, api.MaxMessageID).Draw(t, "id"), Channel: rapid.StringN(0, 5, 20).Draw(t,
				"channel"),
			Waves: rapid.Bool().Draw(t, "waves"), Detail: rapid.SampledFrom([]string{"", api.DetailDenials,
				api.DetailCounts}).Draw(t, "detail"),
		}
		if set := rapid.Bool().Draw(t, "enforce"); rapid.Bool().Draw(t, "given") {
			sent.Enforce = &set
		}
		want := &FilterRequest{
			MessageID: sent.MessageID, Channel: sent.Channel, Waves: sent.Waves,
			Counts:  sent.Detail == api.DetailCounts,
			Enforce: sent.Enforce == nil || *sent.Enforce, Record: true,
		}
		if want.Enforce && rapid.Bool().Draw(t, "preview") {
			record, at := false, time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "at")).UTC()
			sent.Record, sent.At = &record, &at
			want.Record, want.At = false, at.Format(time.RFC3339Nano)
		}
		users := rapid.SliceOfNDistinct(rapid.Uint32(), 1, 20, rapid.ID).Draw(t, "users")
		if want.Form = numberForm.Draw(t, "form"); want.Form == InBitmaps {
			slices.Sort(users)
			sent.UsersBitmap = &api.Bitmap{Bitmap: roaring.BitmapOf(users...)}
		} else {
			sent.UserIDs = users
		}
		want.Users = capping.AppendUsers(nil, users)
		body, err := json.Marshal(sent)
		require.NoError(t, err)
		got, err := DecodeFilter(body, testBounds)
		require.NoError(t, err, "%s", body)
		require.Equal(t, want, got)
	})
}

// TestPermitsRequestsAreTheWireTypes checks the same for permits requests.
func TestPermitsRequestsAreTheWireTypes(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`)
	rapid.Check(t, func(t *rapid.T) {
		sent := api.PermitsRequest{
			Pacers:    rapid.SliceOfN(name, 1, api.MaxPacers).Draw(t, "pacers"),
			Permits:   rapid.IntRange(0, api.MaxPermits).Draw(t, "permits"),
			MaxWait:   api.Wait(rapid.Int64Range(0, int64(api.MaxWait)).Draw(t, "wait")),
			RequestID: rapid.StringN(0, 20, api.MaxRequestID).Draw(t, "request"),
			MessageID: rapid.StringN(0, 20, api.MaxMessageID).Draw(t, "message"),
			Key:       rapid.StringN(0, 20, api.MaxPacerKey).Draw(t, "key"),
			Share:     rapid.OneOf(rapid.Just(""), name).Draw(t, "share"),
			Lease: api.Wait(rapid.OneOf(rapid.Just(int64(0)),
				rapid.Int64Range(int64(api.MinLease), int64(api.MaxLease))).Draw(t, "lease")),
		}
		body, err := json.Marshal(sent)
		require.NoError(t, err)
		got, err := DecodePermits(body)
		require.NoError(t, err, "%s", body)
		require.Equal(t, &PermitsRequest{sent.Pacers, sent.Permits, time.Duration(sent.MaxWait), sent.RequestID,
			sent.MessageID, sent.Key, sent.Share, time.Duration(sent.Lease)}, got)
	})
}
