package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments/ingest/format"
)

// percentStep is the distance between two truncated lengths in per cent.
const percentStep = 10

// export is one file in the form that a warehouse writes. It is larger than two blocks and than the
// look-ahead, even when compressed, so that buffers end inside it at every stage.
type export struct {
	name    string
	content []byte
	table   bool
	rows    int
	lineEnd bool // cut right behind a line break it cannot be told from a whole one
}

// exports returns random users in every format. The rows are wide, because the number of rows
// determines the time.
var exports = sync.OnceValue(func() []export {
	random := rand.New(rand.NewPCG(1, 2))
	note := func() string {
		noise := binary.NativeEndian.AppendUint64(nil, random.Uint64())
		for range 4 {
			noise = binary.NativeEndian.AppendUint64(noise, random.Uint64())
		}
		return base64.RawStdEncoding.EncodeToString(noise)
	}
	text := func(name string, rows int, row func(id uint32) string) export {
		var b bytes.Buffer
		for range rows {
			b.WriteString(row(random.Uint32()))
		}
		return export{name: name, content: b.Bytes(), rows: rows, lineEnd: true}
	}
	table := text("table.csv", 36_000, func(id uint32) string {
		return fmt.Sprintf("%d,%s,%s\n", id, []string{"new", "old"}[random.IntN(2)], note())
	})
	table.table = true
	return []export{
		text("a.txt", 270_000, func(id uint32) string { return fmt.Sprintf("%d\n", id) }),
		text("a.csv", 36_000, func(id uint32) string { return fmt.Sprintf("%d,\"%s\"\r\n", id, note()) }),
		text("a.tsv", 38_000, func(id uint32) string { return fmt.Sprintf("%d\t%s\n", id, note()) }),
		table,
		text("a.ndjson", 30_000, func(id uint32) string {
			return fmt.Sprintf("{\"user_id\": %d, \"note\": \"%s\"}\n",
				id, note())
		}),
		parquetExport(random),
		roaringExport(random),
	}
})

// parquetExport returns a Parquet file with row groups of more than a block, and with a column that is
// not read.
func parquetExport(random *rand.Rand) export {
	const rows = 140_000
	type row struct {
		UserID  int64  `parquet:"user_id,plain"`
		Segment string `parquet:"segment,dict"`
		Note    int64  `parquet:"note,plain"`
	}
	var records []row
	for range rows {
		records = append(records, row{int64(random.Uint32()), []string{"new", "old"}[random.IntN(2)],
			int64(random.Uint64())})
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(80_000))
	_, err := w.Write(records)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return export{name: "a.parquet", content: b.Bytes(), rows: rows}
}

func roaringExport(random *rand.Rand) export {
	var set bitmap.Set
	for range 1_200_000 {
		set.Add(random.Uint32N(270_000_000))
	}
	b := set.Bitmap()
	return export{name: "a.roaring", content: b.Bytes(), rows: int(b.Cardinality())}
}

// packed are the exports plain and compressed by each of two means, in one frame
// or member with the one and in two with the other, by turns.
func packed(t testing.TB) []export {
	var list []export
	for i, e := range exports() {
		require.Greater(t, len(e.content), 2*format.HeadBytes, e.name)
		list = append(list, e)
		for k, p := range []struct {
			suffix string
			pack   func([]byte) []byte
		}{{".gz", fastGzip}, {".zst", fastZstd}} {
			c := export{name: e.name + p.suffix, content: p.pack(e.content), table: e.table, rows: e.rows}
			if half := len(e.content) / 2; (i+k)%2 == 1 {
				c.name, c.content = "two-"+c.name, append(p.pack(e.content[:half]), p.pack(e.content[half:])...)
			}
			require.Greater(t, len(c.content), format.HeadBytes, c.name)
			list = append(list, c)
		}
	}
	return list
}

func fastGzip(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, err := z.Write(content)
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func fastZstd(content []byte) []byte {
	var b bytes.Buffer // as a stream: without the length that EncodeAll writes into the frame
	z, _ := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest))
	_, err := z.Write(content)
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// readExport returns how many rows were read, or why reading failed.
func readExport(t testing.TB, cfg Config, e export, path string) (int, error) {
	in := Input{Path: path}
	if path == stdin && bytes.Contains([]byte(e.name), []byte("csv")) {
		in.Format = csv // a first line cut off within its first field could be any format's
	}
	r := NewReader(cfg)
	var err error
	if e.table {
		in.SegmentColumn = "2"
		_, err = r.ReadTable(t.Context(), []Input{in}, nil)
	} else {
		_, err = r.ReadIDs(t.Context(), []Input{in})
	}
	if err != nil {
		return 0, err
	}
	return int(r.Reports()[0].Rows), r.Check()
}

// cuts returns the lengths to which an export is truncated: nothing, all but the last byte, and every
// step-th percent, starting at the i-th of n parts of a step, so that all exports together are cut
// everywhere. A cut that no reader could detect is moved by a byte.
func (e *export) cuts(i, n, step int) []int {
	lengths := []int{0}
	for percent := i * step / n; percent < 100; percent += step {
		lengths = append(lengths, e.visible(len(e.content)*percent/100))
	}
	return slices.Compact(append(lengths, e.visible(len(e.content)-1)))
}

// visible moves a cut that falls directly after a line or an object, where the remaining file would
// look complete.
func (e *export) visible(n int) int {
	for n > 0 && e.lineEnd && (e.content[n-1] == '\n' || e.content[n-1] == '}') {
		n--
	}
	return n
}

// TestInputThatEndsEarlyIsNoFile checks that no truncated input is accepted as complete, whatever its
// source.
func TestInputThatEndsEarlyIsNoFile(t *testing.T) {
	t.Parallel()
	list := packed(t)
	t.Run("file", func(t *testing.T) { cutFiles(t, list) })
	t.Run("standard input", func(t *testing.T) { cutStandardInput(t, list) })
	t.Run("broken stream", func(t *testing.T) { breakStreams(t, list) })
	t.Run("object", func(t *testing.T) { cutObjects(t, list) })
}

func cutFiles(t *testing.T, list []export) {
	for i, e := range list {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), e.name)
			require.NoError(t, os.WriteFile(path, e.content, 0o644))
			rows, err := readExport(t, Config{}, e, path)
			require.NoError(t, err)
			require.Equal(t, e.rows, rows)
			lengths := e.cuts(i, len(list), percentStep)
			for _, n := range slices.Backward(lengths) {
				require.NoError(t, os.Truncate(path, int64(n)))
				rows, err := readExport(t, Config{}, e, path)
				if n == 0 && e.lineEnd {
					require.Zero(t, rows) // an empty part of an export
					continue
				}
				require.Error(t, err, "%d of %d bytes", n, len(e.content))
			}
		})
	}
}

func cutStandardInput(t *testing.T, list []export) {
	for i, e := range list {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			rows, err := readExport(t, Config{Stdin: bytes.NewReader(e.content)}, e, stdin)
			require.NoError(t, err)
			require.Equal(t, e.rows, rows)
			for _, n := range e.cuts(i, len(list), 2*percentStep) {
				_, err := readExport(t, Config{Stdin: bytes.NewReader(e.content[:n])}, e, stdin)
				require.Error(t, err, "%d of %d bytes", n, len(e.content))
			}
		})
	}
}

// breaking is a reader that ends with an error that some readers mistake for the end of a file.
type breaking struct {
	from io.Reader
	with error
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err == io.EOF {
		err = b.with
	}
	return n, err
}

// breakStreams checks that a broken stream is an error wherever it breaks, even directly after a line,
// a frame or a member.
func breakStreams(t *testing.T, list []export) {
	faults := []error{io.ErrUnexpectedEOF, fmt.Errorf("connection: %w", io.EOF), io.ErrClosedPipe}
	for i, e := range list {
		for k, n := range []int{0, len(e.content) / 2, len(e.content)} {
			for n > 0 && n < len(e.content) && e.lineEnd && e.content[n-1] != '\n' {
				n++
			}
			fault := faults[(i+k)%len(faults)]
			_, err := readExport(t, Config{Stdin: &breaking{bytes.NewReader(e.content[:n]), fault}}, e, stdin)
			require.ErrorIs(t, err, fault, "%s: %d of %d bytes, %v", e.name, n, len(e.content), fault)
		}
	}
}

// cutObjects checks that a truncated object is rejected and that an object whose connection breaks
// several times is read to its end.
func cutObjects(t *testing.T, list []export) {
	bucket := s3test.Bucket(t)
	var each []export
	for i := 0; i < len(list); i += 3 {
		each = append(each, list[i+i/3%3])
	}
	for i, e := range each {
		_, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &e.name,
			Body: bytes.NewReader(e.content)})
		require.NoError(t, err)
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var after, requests atomic.Int64
			once := s3test.Proxy(t, func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) == 1 {
						s3test.CutBody(w, r, server, int(after.Load()))
					}
					server.ServeHTTP(w, r)
				})
			})
			always := s3test.Proxy(t, func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Range") != "" { // nothing of the rest
						s3test.CutBody(w, r, server, 0)
					}
					s3test.CutBody(w, r, server, int(after.Load()))
				})
			})
			for _, n := range e.cuts(i, len(each), percentStep) {
				after.Store(int64(n))
				requests.Store(0)
				rows, err := readExport(t, Config{S3: objects.S3Config{Endpoint: once}}, e, "s3://"+bucket+"/"+e.name)
				require.NoError(t, err, "%d of %d bytes", n, len(e.content))
				require.Equal(t, e.rows, rows)
			}
			_, err := readExport(t, Config{S3: objects.S3Config{Endpoint: always}}, e, "s3://"+bucket+"/"+e.name)
			require.ErrorContains(t, err, fmt.Sprintf("ended after %d of %d bytes, 6 times in a row", after.Load(),
				len(e.content)))
		})
	}
}

// TestObjectThatIsReplacedWhileItIsReadIsNoFile checks that reading does not resume after an object
// was replaced, because the two halves would come from different exports. Reading also does not resume
// if a proxy drops conditions or announces a wrong length.
func TestObjectThatIsReplacedWhileItIsReadIsNoFile(t *testing.T) {
	t.Parallel()
	const size, broken = 8 * numbers, format.HeadBytes
	otherRange := fmt.Sprintf("bytes %d-%d/%d", broken, size-1, size+1)
	for name, c := range map[string]struct {
		replaced bool
		pass     func(*s3.GetObjectInput)            // what of a request for the rest does not reach the server
		answer   func(h http.Header, continued bool) // changes the headers of an answer
		want     string                              // empty: all of the object is read
	}{
		"not replaced":        {},
		"conditions are kept": {replaced: true, want: "status 412, PreconditionFailed: "},
		"conditions are lost": {replaced: true, pass: withoutCondition,
			want: "the object was replaced while it was read: ETag is "},
		"not replaced, without ETag": {answer: func(h http.Header, _ bool) { h.Del("ETag") }},
		"replaced, without ETag": {replaced: true, answer: laterWithoutTag,
			want: "the object was replaced while it was read: Last-Modified is "},
		"the ETag is gone": {answer: onlyContinued(func(h http.Header) { h.Del("ETag") }),
			want: "the object was replaced while it was read: ETag is , but was "},
		"nothing tells the version": {answer: func(h http.Header, _ bool) { h.Del("ETag"); h.Del("Last-Modified") },
			want: "without ETag and Last-Modified"},
		"ranges are lost": {pass: withoutRange, want: "the S3 server sent a different byte range than requested: " +
			"Content-Range is \"\""},
		"another range": {answer: rangeOf(fmt.Sprintf("bytes 0-%d/%d", size-broken-1, size)),
			want: "the S3 server sent a different byte range than requested: Content-Range is \"bytes 0-"},
		"the range of another " +
			"object": {answer: rangeOf(otherRange), want: "the S3 server sent a different byte range than requested: " +
			"Content-Range is \"" +
			otherRange},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, key := s3test.Bucket(t), "a.txt"
			putNumbers(t, bucket, key, 0)
			endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					continued := r.Header.Get("Range") != ""
					if c.answer != nil {
						w = &relabelled{ResponseWriter: w, change: func(h http.Header) { c.answer(h, continued) }}
					}
					if !continued {
						if c.replaced {
							defer putNumbers(t, bucket, key, 1_000_000)
						}
						s3test.CutBody(w, r, server, broken)
					}
					if c.pass != nil {
						getWithout(t, w, r, &s3.GetObjectInput{Bucket: &bucket, Key: &key}, c.pass)
						return
					}
					server.ServeHTTP(w, r)
				})
			})
			set, err := NewReader(Config{S3: objects.S3Config{Endpoint: endpoint}}).ReadIDs(t.Context(),
				[]Input{{Path: "s3://" + bucket + "/" + key}})
			if c.want == "" {
				require.NoError(t, err)
				require.EqualValues(t, numbers, set.Bitmap().Cardinality())
				return
			}
			require.ErrorContains(t, err, "read on from byte 1048576 of s3://"+bucket+"/a.txt: ")
			require.ErrorContains(t, err, c.want)
			if c.replaced {
				require.ErrorContains(t, err, "the object was replaced while it was read")
			}
		})
	}
}

// numbers is the number of 8-byte numbers in a file that is longer than the look-ahead.
const numbers = format.HeadBytes/8 + 30_000

func putNumbers(t *testing.T, bucket, key string, first int) {
	var text bytes.Buffer
	for i := range numbers {
		fmt.Fprintf(&text, "%07d\n", first+i)
	}
	_, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
		Body: bytes.NewReader(text.Bytes())})
	require.NoError(t, err)
}

func withoutCondition(in *s3.GetObjectInput) { in.IfMatch = nil }
func withoutRange(in *s3.GetObjectInput)     { in.Range = nil }

// getWithout forwards a request without some of its headers and signs it again, because the signature
// covers conditions.
func getWithout(t *testing.T, w http.ResponseWriter, r *http.Request, in *s3.GetObjectInput,
	drop func(*s3.GetObjectInput)) {
	in.Range, in.IfMatch = aws.String(r.Header.Get("Range")), aws.String(r.Header.Get("If-Match"))
	drop(in)
	out, err := s3test.Client().GetObject(r.Context(), in)
	if !assert.NoError(t, err) {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer out.Body.Close()
	status := http.StatusOK
	if out.ContentRange != nil {
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", *out.ContentRange)
	}
	w.Header().Set("ETag", *out.ETag)
	w.Header().Set("Last-Modified", out.LastModified.Format(http.TimeFormat))
	w.Header().Set("Content-Length", fmt.Sprint(*out.ContentLength))
	w.WriteHeader(status)
	_, _ = io.Copy(w, out.Body)
}

func onlyContinued(change func(h http.Header)) func(http.Header, bool) {
	return func(h http.Header, continued bool) {
		if continued {
			change(h)
		}
	}
}

func rangeOf(value string) func(http.Header, bool) {
	return onlyContinued(func(h http.Header) { h.Set("Content-Range", value) })
}

// laterWithoutTag gives the second version a later Last-Modified, because versions within one second
// have the same one.
func laterWithoutTag(h http.Header, continued bool) {
	h.Del("ETag")
	if continued {
		h.Set("Last-Modified", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	}
}

// relabelled is a response writer that changes the headers of a response.
type relabelled struct {
	http.ResponseWriter
	change func(h http.Header)
}

// WriteHeader implements http.ResponseWriter.
func (r *relabelled) WriteHeader(status int) {
	r.change(r.Header())
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the inner writer for http.ResponseController.
func (r *relabelled) Unwrap() http.ResponseWriter { return r.ResponseWriter }
