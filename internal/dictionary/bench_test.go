package dictionary

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// BenchmarkDictionary measures with 15 million images, or with the number in CAPPER_BENCH_IMAGES.
func BenchmarkDictionary(b *testing.B) {
	n := 15_000_000
	if text := os.Getenv("CAPPER_BENCH_IMAGES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	r := rand.New(rand.NewPCG(1, 2))
	file := bytes.NewBuffer(make([]byte, 0, 16+n*7))
	w, err := NewWriter(file, uint32(n))
	if err != nil {
		b.Fatal(err)
	}
	step, image := ^uint64(0)/uint64(n)-1, uint64(0)
	for range n { // one image at random in each step, without a sort
		if err := w.Add(image + r.Uint64N(step)); err != nil {
			b.Fatal(err)
		}
		image += step
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	var d *Dictionary
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if d, err = Open(file.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(file.Len())/float64(n), "B/image")
	})
	asked, numbers := make([]uint64, 1<<20), make([]uint32, 1<<20)
	run := func(name string) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d.Numbers(asked, numbers)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(asked)), "ns/image")
		})
	}
	for i := range asked {
		asked[i] = d.Image(r.Uint32N(uint32(n)))
	}
	run("random")
	for i := range asked {
		asked[i] = d.Image(uint32(i))
	}
	run("ascending")
}
