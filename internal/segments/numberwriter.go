package segments

import (
	"capper/internal/dictionary"
	"capper/internal/ids"
)

// A NumberWriter writes the dictionary of a generation (published version), and the BackFile (file with the user ids)
// for converting user numbers to ids. The caller must add the ids in ascending order of their images (64-bit numbers
// that stand for ids).
type NumberWriter struct {
	kind           ids.Kind
	dictionary     *dictionary.Writer
	numbers, names buffer
	rests          *dictionary.RestWriter // for UUIDs with a BackFile
	texts          *dictionary.TextWriter // for text ids with a BackFile
}

// A buffer is a file in memory.
type buffer []byte

// Write implements io.Writer.
func (f *buffer) Write(p []byte) (int, error) {
	*f = append(*f, p...)
	return len(p), nil
}

// NewNumberWriter returns a NumberWriter for n ids. The argument "names" of NewNumberWriter is the largest possible
// size of the BackFile (file with the user ids) in bytes. If the argument "names" is 0, the NumberWriter writes no
// BackFile. Ids of the kind uint64 never need a BackFile.
func NewNumberWriter(kind ids.Kind, n uint32, names int64) (w *NumberWriter, err error) {
	w = &NumberWriter{kind: kind, numbers: make(buffer, 0, dictionary.Size(n)), names: make(buffer, 0, names)}
	if w.dictionary, err = dictionary.NewWriter(&w.numbers, n); err != nil || names == 0 {
		return w, err
	}
	if kind == ids.Text {
		w.texts, err = dictionary.NewTextWriter(&w.names, n)
	} else {
		w.rests, err = dictionary.NewRestWriter(&w.names, n)
	}
	return w, err
}

// Add adds an id by its image (64-bit number that stands for the id). The caller also passes the text of a text id, or
// the 64 bits of a UUID that the image lacks.
func (w *NumberWriter) Add(image, rest uint64, text []byte) error {
	if err := w.dictionary.Add(image); err != nil {
		return err
	}
	switch {
	case w.rests != nil:
		return w.rests.Add(rest)
	case w.texts != nil:
		return w.texts.Add(text)
	}
	return nil
}

// Close returns the finished dictionary and the Back, which converts user numbers to ids. If the NumberWriter wrote no
// BackFile, the second result is nil.
func (w *NumberWriter) Close() (d *Dictionary, b *Back, err error) {
	if err = w.dictionary.Close(); err == nil {
		d, err = NewDictionary(w.numbers)
	}
	switch {
	case err != nil:
	case w.rests != nil:
		err = w.rests.Close()
	case w.texts != nil:
		err = w.texts.Close()
	default:
		return d, nil, nil
	}
	if err == nil {
		b, err = NewBack(w.kind, w.names)
	}
	return d, b, err
}
