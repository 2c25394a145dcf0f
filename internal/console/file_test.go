package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

func TestAFileOfIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]uint32{
		"7\r\n8\r\n9\r\n":                         {7, 8, 9},
		"\ufeffUser_ID\n7\n\n 8 \n":               {7, 8},
		"id\n7":                                   {7},
		"user_id,amount\n7,100\n42,200\n":         {7, 42},
		"amount, id\n100, 7\n200, 42\n":           {7, 42},
		"id,user_id\n1,7\n2,42\n":                 {7, 42},
		"name\tuser_id\n\t7\nA, B\t42\n":          {7, 42},
		"name,user_id\n\"A,\nB\",7\n":             {7},
		"":                                        nil,
		"user_id\n":                               nil,
		"4294967295\n0\n" + `"12"` + "\n00000007": {0, 7, 12, 4294967295},
	} {
		found, fault := readFile(ids.Dense, strings.NewReader(text))
		require.Empty(t, fault, "%q", text)
		require.ElementsMatch(t, want, found.dense.ToArray(), "%q", text)
	}
	for text, want := range map[string]string{
		"7,100\n42,200\n":          "Line 1 has 2 values, and none is named user_id or id",
		"7\t100\n42\t200\n":        "Line 1 has 2 values, and none is named user_id or id",
		"customer,amount\n7,100":   "Line 1 has 2 values, and none is named user_id or id",
		"7\n8\n42,200\n":           "Line 3 has 2 values, but line 1 has 1",
		"user_id,amount\n7\n":      "Line 2 has 1 value, but line 1 has 2",
		"user_id,amount\n,100\n":   `Line 2: "" is not a user id`,
		"7\n8 9\n":                 `Line 2: "8 9" is not a user id`,
		"7;8\n":                    `Line 1: "7;8" is not a user id`,
		"7\n8\t9\n":                `Line 2: "8\t9" is not a user id`,
		"customers\n7\n":           `Line 1: "customers" is not a user id`,
		"user_id\n4294967296\n":    `Line 2: "4294967296" is not a user id`,
		"user_id\n7\n\"8\n":        "line 3",
		"user_id\n7\nuser_id\n8\n": `Line 3: "user_id" is not a user id`,
	} {
		_, fault := readFile(ids.Dense, strings.NewReader(text))
		require.Contains(t, fault, want, "%q", text)
	}
}

func TestTheSampleFileOfASegment(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "segments", "new.csv"))
	require.NoError(t, err)
	found, fault := readFile(ids.Dense, strings.NewReader(string(text)))
	require.Empty(t, fault)
	require.Equal(t, uint64(strings.Count(string(text), "\n")-1), found.count())
	require.Zero(t, found.repeats)
}
