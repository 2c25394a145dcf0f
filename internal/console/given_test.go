package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

const aUUID = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"

// TestIDsOfOtherKindsAreRead checks pasted ids and files of ids that are not dense.
func TestIDsOfOtherKindsAreRead(t *testing.T) {
	t.Parallel()
	upper := "{" + strings.ToUpper(aUUID) + "}"
	for _, c := range []struct {
		kind        ids.Kind
		pasted      string
		count, more int
		fault       string
	}{
		{ids.UUID, aUUID + ", urn:uuid:" + aUUID + ";" + upper + "\n6ba7b8109dad11d180b400c04fd430c8", 2, 2, ""},
		{ids.UUID, aUUID + "\r\n7", 0, 0, `Line 2: the id is not a UUID: "7" has 1 hexadecimal digit, and a UUID has 32.`},
		{ids.Uint64, "7 18446744073709551615\n7", 2, 1, ""},
		{ids.Uint64, "007", 0, 0, `Line 1: the id is not a uint64 id: "007" begins with 0`},
		{ids.Text, "a b, c;d\r\n A@x.com\n\na@x.com\na b, c;d", 3, 1, ""},
		{ids.Text, strings.Repeat("x", 500), 0, 0, "Line 1: the id is not a text id"},
	} {
		found, fault := readWords(c.kind, strings.NewReader(c.pasted))
		if c.fault != "" {
			require.Contains(t, fault, c.fault)
			continue
		}
		require.Empty(t, fault)
		require.EqualValues(t, c.count, found.count(), c.pasted)
		require.Equal(t, c.more, found.repeats)
	}
	found, fault := readFile(ids.Text, strings.NewReader("name,user_id\nx,\"a, b\"\ny, c\n"))
	require.Empty(t, fault)
	require.Equal(t, []string{"a, b", " c"}, found.texts)
	found, fault = readFile(ids.UUID, strings.NewReader("user_id\n"+upper+"\n "+aUUID+" \n"))
	require.Empty(t, fault)
	require.EqualValues(t, 1, found.count())
	require.Equal(t, 1, found.repeats)
	_, fault = readFile(ids.UUID, strings.NewReader("user_id,name\n,x\n"))
	require.Contains(t, fault, "Line 2: the id is not a UUID")

	var many strings.Builder
	for i := range 100_001 {
		fmt.Fprintln(&many, i)
	}
	_, fault = readWords(ids.Text, strings.NewReader(many.String()))
	require.Contains(t, fault, "The list has 100,001 ids, but at most 100,000 can be tried at once.")
	found, fault = readWords(ids.Uint64, strings.NewReader(many.String()))
	require.Empty(t, fault)
	require.EqualValues(t, 100_001, found.count())
}

// TestSomeOfAGroup checks that a forecast decides users from the whole list.
func TestSomeOfAGroup(t *testing.T) {
	t.Parallel()
	for _, kind := range ids.Kinds() {
		g := newGiven(kind)
		for i := range 1000 {
			id := fmt.Sprint(i)
			if kind == ids.UUID {
				id = fmt.Sprintf("%032d", i)
			}
			require.Empty(t, g.add(id, 1))
		}
		require.Same(t, &g.group, g.some(1000))
		some := g.some(10)
		require.EqualValues(t, 10, some.count())
		again := newGiven(kind)
		for i := range 10 {
			id := fmt.Sprint(100 * i)
			if kind == ids.UUID {
				id = fmt.Sprintf("%032d", 100*i)
			}
			require.Empty(t, again.add(id, 1))
		}
		require.Equal(t, &again.group, some)
		require.Equal(t, "push", some.forecast("push").Channel)
	}
}
