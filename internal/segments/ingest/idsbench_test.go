package ingest

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
	"capper/internal/segments/segmentstest"
)

// BenchmarkUUIDs builds one segment of random UUIDs: CAPPER_BENCH_IDS says how many, a million by default.
//
// CAPPER_BENCH_IDS=270000000 go test ./internal/segments/ingest -run - -bench UUIDs/nameless -benchtime 1x -timeout
// 1h
func BenchmarkUUIDs(b *testing.B) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("CAPPER_BENCH_IDS"), "1000000"))
	require.NoError(b, err)
	for _, names := range []bool{false, true} {
		b.Run(map[bool]string{false: "nameless", true: "names"}[names], func(b *testing.B) {
			before := cpuSeconds(b)
			for b.Loop() {
				p := &Plan{Segments: []Definition{{Name: "all", Inputs: []Input{{Path: stdin, Format: Text}}}}}
				cfg := Config{Scheme: ids.New(ids.UUID, segmentstest.Key(1)), Names: names,
					Stdin: &uuidReader{random: rand.New(rand.NewPCG(1, 2)), left: n}}
				result, err := Run(b.Context(), p, cfg, quiet)
				require.NoError(b, err)
				require.EqualValues(b, n, result.Candidate.Dictionary.Len())
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mids/s")
			b.ReportMetric((cpuSeconds(b)-before)/float64(b.N), "CPU-s/op")
			b.ReportMetric(peakMemory(b), "peak-MB")
		})
	}
}

// cpuSeconds returns the CPU time of the process so far.
func cpuSeconds(b *testing.B) float64 {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// peakMemory returns the largest resident memory of the process so far in megabytes.
func peakMemory(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes float64
	_, err = fmt.Sscan(after, &kilobytes)
	require.NoError(b, err)
	return kilobytes / 1000
}

// uuidReader is a text of random UUIDs, one a line.
type uuidReader struct {
	random *rand.Rand
	left   int
	rest   []byte
	line   [37]byte
}

func (r *uuidReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 {
			if r.left == 0 {
				return n, io.EOF
			}
			r.left--
			r.next()
		}
		copied := copy(p[n:], r.rest)
		n, r.rest = n+copied, r.rest[copied:]
	}
	return n, nil
}

func (r *uuidReader) next() {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:], r.random.Uint64())
	binary.NativeEndian.PutUint64(id[8:], r.random.Uint64())
	line := r.line[:0]
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			line = append(line, '-')
		}
		line = hex.AppendEncode(line, part)
	}
	r.rest = append(line, '\n')
}
