package format_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/segments/ingest/format"
)

const (
	ann = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	ben = "00000000-0000-0000-0000-000000000000"
)

// parquetOf returns a Parquet file of rows.
func parquetOf[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, rows))
	return b.Bytes()
}

// TestSendsOfEveryKindOfIDs reads the ids of each kind in each format: rows have the image and the usual spelling.
func TestSendsOfEveryKindOfIDs(t *testing.T) {
	t.Parallel()
	at := noon.Unix() - 1
	raw := [16]byte(must(hex.DecodeString(strings.ReplaceAll(ann, "-", ""))))
	type text struct {
		User string `parquet:"user_id"`
		At   int64  `parquet:"at"`
	}
	type uuid struct {
		User [16]byte `parquet:"user_id,uuid"`
		At   int64    `parquet:"at"`
	}
	type bare struct {
		User [16]byte `parquet:"user_id"`
		At   int64    `parquet:"at"`
	}
	type unsigned struct {
		User uint64 `parquet:"user_id"`
		At   int64  `parquet:"at"`
	}
	type signed struct {
		User int64 `parquet:"user_id"`
		At   int64 `parquet:"at"`
	}
	type narrow struct {
		User uint32 `parquet:"user_id"`
		At   int64  `parquet:"at"`
	}
	csv := func(ids ...string) []byte {
		return []byte("user_id,at\n" + strings.Join(ids, ",1795165964\n") + ",1795165964\n")
	}
	for _, c := range []struct {
		kind ids.Kind
		name string
		data []byte
		want []string
	}{
		{ids.UUID, "x.csv", csv(strings.ToUpper(ann), "{"+ben+"}", `"`+ann+`"`), []string{ann, ben, ann}},
		{ids.UUID, "x.ndjson", []byte(`{"user_id":"urn:uuid:` + ann + `","at":1795165964}` + "\n"), []string{ann}},
		{ids.UUID, "text.parquet", parquetOf(t, text{strings.ToUpper(ann), at}, text{ben, at}), []string{ann, ben}},
		{ids.UUID, "uuid.parquet", parquetOf(t, uuid{raw, at}, uuid{[16]byte{}, at}), []string{ann, ben}},
		{ids.UUID, "bare.parquet", parquetOf(t, bare{raw, at}), []string{ann}},
		{ids.Uint64, "x.tsv", []byte("user_id\tat\n18446744073709551615\t1795165964\n 0 \t1795165964\n"),
			[]string{"18446744073709551615", "0"}},
		{ids.Uint64, "x.ndjson", []byte(`{"user_id":18446744073709551615,"at":1795165964}` + "\n" +
			`{"user_id":"9007199254740993","at":1795165964}` + "\n"),
			[]string{"18446744073709551615", "9007199254740993"}},
		{ids.Uint64, "unsigned.parquet", parquetOf(t, unsigned{1<<64 - 1, at}, unsigned{7, at}),
			[]string{"18446744073709551615", "7"}},
		{ids.Uint64, "narrow.parquet", parquetOf(t, narrow{1<<32 - 1, at}), []string{"4294967295"}},
		{ids.Uint64, "signed.parquet", parquetOf(t, signed{1<<63 - 1, at}), []string{"9223372036854775807"}},
		{ids.Uint64, "text.parquet", parquetOf(t, text{"7", at}), []string{"7"}},
		{ids.Text, "x.csv", csv(`"a, ""b"""`, " a", "é", "007"), []string{`a, "b"`, " a", "é", "007"}},
		{ids.Text, "x.ndjson", []byte(`{"user_id":"a\u00e9\"","at":1795165964}` + "\n"), []string{"aé\""}},
		{ids.Text, "text.parquet", parquetOf(t, text{"a@x", at}), []string{"a@x"}},
		{ids.Dense, "x.csv", csv("7", "4294967295"), []string{"", ""}},
	} {
		scheme := ids.New(c.kind, ids.Key{5})
		rows, bad, err := read(t, c.name, c.data, format.SendOptions{Scheme: scheme})
		require.NoError(t, err, c.name)
		require.Empty(t, bad, c.name)
		var got []string
		for _, row := range rows {
			got = append(got, row.ID)
			if c.kind != ids.Dense {
				image, err := scheme.Parse([]byte(row.ID))
				require.NoError(t, err)
				require.Equal(t, capping.UserID(image), row.User)
			}
		}
		require.Equal(t, c.want, got, "%s %s", c.kind, c.name)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestSendsOfOtherIDsAreBadRows checks that the reason of a bad row names the column, the value and the rule, and that
// a column which cannot hold ids of the kind is an error of the file.
func TestSendsOfOtherIDsAreBadRows(t *testing.T) {
	t.Parallel()
	type number struct {
		User int64 `parquet:"user_id"`
		At   int64 `parquet:"at"`
	}
	type decimal struct {
		User [16]byte `parquet:"user_id,decimal(0:38)"`
		At   int64    `parquet:"at"`
	}
	at := noon.Unix() - 1
	csv := func(id string) []byte { return []byte("who,at\n" + id + ",1795165964\n") }
	for _, c := range []struct {
		kind ids.Kind
		name string
		data []byte
		want string
	}{
		{ids.UUID, "x.csv", csv("7"), `2: who is not a UUID: "7" has 1 hexadecimal digit, and a UUID has 32`},
		{ids.UUID, "x.csv", csv(" "), `2: who is empty, but must be an id of the kind uuid`},
		{ids.UUID, "x.ndjson", []byte(`{"who":7,"at":1795165964}` + "\n"), "1: who must be a JSON string, got 7"},
		{ids.Text, "x.ndjson", []byte(`{"who":7,"at":1795165964}` + "\n"), "1: who must be a JSON string, got 7"},
		{ids.Text, "x.csv", csv(strings.Repeat("x", 257)), "has 257 bytes, and a text id has at most 256"},
		{ids.Text, "x.csv", csv("a\xff"), "is not valid UTF-8 at byte 2"},
		{ids.Uint64, "x.csv", csv("007"), `2: who is not a uint64 id: "007" begins with 0`},
		{ids.Uint64, "x.csv", csv("18446744073709551616"), "is above 18446744073709551615"},
	} {
		rows, bad, err := read(t, c.name, c.data, format.SendOptions{Scheme: ids.New(c.kind, ids.Key{}),
			Columns: format.Columns{User: "who"}})
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Len(t, bad, 1, c.want)
		require.Contains(t, bad[0], c.want)
	}
	uint64s := format.SendOptions{Scheme: ids.New(ids.Uint64, ids.Key{})}
	_, bad, err := read(t, "x.parquet", parquetOf(t, number{-1, at}), uint64s)
	require.NoError(t, err)
	require.Contains(t, bad[0], `1: user_id is not a uint64 id: "-1" has the character "-"`)
	for _, kind := range []ids.Kind{ids.UUID, ids.Text} {
		_, _, err := read(t, "x.parquet", parquetOf(t, number{7, at}),
			format.SendOptions{Scheme: ids.New(kind, ids.Key{})})
		require.ErrorContains(t, err, `column "user_id" has type`)
		require.ErrorContains(t, err, "but ids of the kind "+kind.String()+" must be strings")
	}
	_, _, err = read(t, "x.parquet", parquetOf(t, decimal{User: [16]byte{15: 7}, At: at}),
		format.SendOptions{Scheme: ids.New(ids.UUID, ids.Key{})})
	require.ErrorContains(t, err, "but ids of the kind uuid must be strings, or UUIDs of 16 bytes")
	rows, bad, err := read(t, "x.parquet", parquetOf(t, decimal{User: [16]byte{15: 7}, At: at}), uint64s)
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Equal(t, "7", rows[0].ID)
}
