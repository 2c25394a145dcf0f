package console

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

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

// packed returns the text packed with gzip.
func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// inUTF16 returns the text in UTF-16 of a byte order.
func inUTF16(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// TestFilesOfSpreadsheets checks the forms of CSV that Excel writes, packed files, and the names of other formats.
func TestFilesOfSpreadsheets(t *testing.T) {
	t.Parallel()
	const excel = "name;user_id\r\nAnna;7\r\nÖzgür;42\r\n"
	for name, text := range map[string]string{
		"semicolons":          excel,
		"quoted header":       "\"name\";\"user_id\"\n\"a;b\";7\nc;42\n",
		"the separator named": "sep=;\r\n" + excel,
		"UTF-8 with a mark":   "\ufeff" + excel,
		"Unicode text":        inUTF16("\ufeffname\tuser_id\r\nAnna\t7\r\nÖ\t42\r\n", binary.LittleEndian),
		"big endian":          inUTF16("\ufeff"+excel, binary.BigEndian),
		"without a mark":      inUTF16("7\n42\n", binary.LittleEndian),
		"packed":              packed(t, excel),
		"packed Unicode":      packed(t, inUTF16("\ufeff7\n42", binary.LittleEndian)),
	} {
		found, fault := readFile(ids.Dense, strings.NewReader(text))
		require.Empty(t, fault, name)
		require.Equal(t, []uint32{7, 42}, found.dense.ToArray(), name)
	}
	for want, text := range map[string]string{
		"Excel workbook or a ZIP": "PK\x03\x04rest",
		"old Excel workbook":      "\xd0\xcf\x11\xe0rest",
		"packed with zstd":        "\x28\xb5\x2f\xfdrest",
		"Parquet":                 "PAR1rest",
		"is a PDF":                "%PDF-1.7",
		"damaged or cut":          packed(t, excel)[:30],
		"cannot be unpacked":      "\x1f\x8b",
		"more than 64 MB":         packed(t, strings.Repeat("0\n", mostUnpacked/2+1)),
	} {
		_, fault := readFile(ids.Dense, strings.NewReader(text))
		require.Contains(t, fault, want)
	}
	found, fault := readFile(ids.Text, strings.NewReader("a;b\nc;d\n"))
	require.Empty(t, fault)
	require.Equal(t, []string{"a;b", "c;d"}, found.texts, "a semicolon may be part of a text")
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
