package segments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// A Pointer is the content of current.json: the name of the live generation (published version for the services), and a
// hash of its manifest.
type Pointer struct {
	FormatVersion int    `json:"format_version"`
	Generation    string `json:"generation"`
	// SHA256 is the SHA-256 of the generation's manifest. If SHA256 is empty, readers check the manifest only against
	// the generation's name.
	SHA256 string `json:"sha256,omitempty"`
}

// ParsePointer decodes and checks current.json.
func ParsePointer(raw []byte) (Pointer, error) {
	var p Pointer
	if err := DecodeDocument(raw, &p); err != nil {
		return p, fmt.Errorf("%s: %w", CurrentKey, err)
	}
	if !generationRule.MatchString(p.Generation) {
		return p, fmt.Errorf("%s: generation %q: must be a name such as 20261120T101500.000Z-0a1b2c3d",
			CurrentKey, p.Generation)
	}
	if p.SHA256 != "" && !sha256Rule.MatchString(p.SHA256) {
		return p, fmt.Errorf("%s: sha256 %q: must be 64 lower-case hex digits", CurrentKey, p.SHA256)
	}
	if end := raw[len(bytes.TrimRight(raw, " \t\r\n")):]; bytes.ContainsRune(end, '\t') &&
		bytes.ContainsRune(end, '\r') {
		return p, fmt.Errorf("%s is damaged: it must not end in a mix of tabs and carriage returns", CurrentKey)
	}
	// The JSON decoder accepts repeated keys and keys in capitals. The comparison with the encoded form rejects such
	// keys.
	var plain bytes.Buffer
	if err := json.Compact(&plain, raw); err != nil {
		return p, fmt.Errorf("%s: %w", CurrentKey, err)
	}
	if want, err := json.Marshal(p); err != nil || !bytes.Equal(plain.Bytes(), want) {
		return p, fmt.Errorf("%s contains %s, but must contain %s", CurrentKey, plain.Bytes(), want)
	}
	return p, nil
}

// The method "check" returns an error if m is not the manifest to which the pointer refers.
func (p Pointer) check(m *Manifest) error {
	if sum := m.sum(); p.SHA256 != "" && p.SHA256 != sum {
		return fmt.Errorf("%s: sha256 is %s, but the manifest of generation (published version) %s has %s",
			CurrentKey, p.SHA256, m.Generation,
			sum)
	}
	return nil
}

// PointerTo returns the pointer (content of current.json) that makes the generation (published version) with the
// manifest m live.
func PointerTo(m *Manifest) Pointer {
	return Pointer{FormatVersion: FormatVersion, Generation: m.Generation, SHA256: m.sum()}
}

// Encode returns the JSON of the pointer, followed by 64 random bits encoded as blanks and tabs. The random bits give
// each write of current.json a different object tag, and let each writer recognise its own bytes.
func (p Pointer) Encode() []byte {
	raw := fmt.Appendf(nil, "{\"format_version\": %d, \"generation\": %q, ", p.FormatVersion, p.Generation)
	if p.SHA256 != "" {
		raw = fmt.Appendf(raw, "\"sha256\": %q", p.SHA256)
	} else {
		raw = raw[:len(raw)-2]
	}
	raw = append(raw, '}')
	for bits, i := rand.Uint64(), 0; i < 64; i++ {
		raw = append(raw, " \t"[bits>>i&1])
	}
	return append(raw, '\n')
}

var errTruncated = errors.New("truncated")

// DecodeDocument decodes a JSON document at a location of segments, and rejects unknown fields. A newer version of
// capper that adds a field must therefore raise the format version.
func DecodeDocument(raw []byte, into any) error { return decodeDocument(raw, into, FormatVersion) }

func decodeDocument(raw []byte, into any, newest int) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("empty")
	}
	var version struct {
		FormatVersion int `json:"format_version"`
	}
	if err := decodeOne(raw, &version, false); err != nil {
		return err
	}
	switch v := version.FormatVersion; {
	case v < FormatVersion:
		return fmt.Errorf("format_version must be at least %[2]d, got %[1]d", v, FormatVersion)
	case v > newest:
		return fmt.Errorf(
			"format_version %d is too new: "+
				"this program reads up to %d, and a newer version of capper wrote the document", v,
			newest)
	}
	return decodeOne(raw, into, true)
}

func decodeOne(raw []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errTruncated
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("extra data after the end of the JSON document")
	}
	return nil
}
