package segments

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// pointer is current.json: which generation is live.
type pointer struct {
	FormatVersion int    `json:"format_version"`
	Generation    string `json:"generation"`
	// SHA256 is that of the generation's manifest. Empty: it is not given, and
	// the manifest is checked against its name alone.
	SHA256 string `json:"sha256,omitempty"`
}

func parsePointer(raw []byte) (pointer, error) {
	var p pointer
	if err := decodeDocument(raw, &p); err != nil {
		return p, fmt.Errorf("%s: %w", currentKey, err)
	}
	if !generationRule.MatchString(p.Generation) {
		return p, fmt.Errorf("%s: generation %q is not a generation's name", currentKey, p.Generation)
	}
	if p.SHA256 != "" && !sha256Rule.MatchString(p.SHA256) {
		return p, fmt.Errorf("%s: sha256 %q is not 64 lower-case hex digits", currentKey, p.SHA256)
	}
	if end := raw[len(bytes.TrimRight(raw, " \t\r\n")):]; bytes.ContainsRune(end, '\t') && bytes.ContainsRune(end, '\r') {
		return p, fmt.Errorf("%s: damaged: a carriage return among the tabs at its end", currentKey)
	}
	// Decoding lets keys pass that are there twice or in capitals; this does not.
	var plain bytes.Buffer
	if err := json.Compact(&plain, raw); err != nil {
		return p, fmt.Errorf("%s: %w", currentKey, err)
	}
	if want, err := json.Marshal(p); err != nil || !bytes.Equal(plain.Bytes(), want) {
		return p, fmt.Errorf("%s: %s, it should be %s", currentKey, plain.Bytes(), want)
	}
	return p, nil
}

// check requires m to be the manifest that was made live.
func (p pointer) check(m *Manifest) error {
	if sum := m.sum(); p.SHA256 != "" && p.SHA256 != sum {
		return fmt.Errorf("%s: sha256 %s, the manifest of generation %s has %s", currentKey, p.SHA256, m.Generation, sum)
	}
	return nil
}

// encodePointer is the current.json that makes the generation of m live.
func encodePointer(m *Manifest) []byte {
	return pointer{FormatVersion: FormatVersion, Generation: m.Generation, SHA256: m.sum()}.encode()
}

// encode writes the pointer in other bytes each time: 64 random bits as blanks
// and tabs at its end. So no tag of current.json ever comes back, and whoever
// writes it can recognise it as his.
func (p pointer) encode() []byte {
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

// hash is the SHA-256 of raw, in lower-case hex.
func hash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// decodeDocument is strict: a later tool that adds a field raises the format version.
func decodeDocument(raw []byte, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("empty")
	}
	var version struct {
		FormatVersion int `json:"format_version"`
	}
	if err := decodeOne(raw, &version, false); err != nil {
		return err
	}
	if version.FormatVersion != FormatVersion {
		return fmt.Errorf("format_version %d, this program reads %d", version.FormatVersion, FormatVersion)
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
		return errors.New("data after the document")
	}
	return nil
}
