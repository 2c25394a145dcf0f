package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDocument reports that a document at the audit location does not match its checksum.
var ErrDocument = errors.New("stored audit document is damaged: its checksum does not match its content")

// A sealed JSON document ends with its checksum as the last member. These constants are the texts before and after
// the digits of a document's checksum.
const (
	sealBegin = `,"check":"`
	sealEnd   = "\"}\n"
)

// checkDigits is the length of a document's checksum. The checksum is the first 32 hex digits of a SHA-256.
const checkDigits = 32

func checkOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:checkDigits]
}

// The function Seal encodes a document, such as an Entry or an Erasure, as a JSON object whose last member is a
// checksum. Besides the checksum, the document must have at least one other member.
func Seal(document any) ([]byte, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	body = body[:len(body)-1]
	return append(body, sealBegin+checkOf(body)+sealEnd...), nil
}

// Unseal decodes a document that Seal encoded. If the bytes do not match their checksum, Unseal returns ErrDocument.
func Unseal(raw []byte, into any) error {
	n := len(raw) - len(sealBegin) - checkDigits - len(sealEnd)
	if n < 1 || string(raw[n:]) != sealBegin+checkOf(raw[:n])+sealEnd {
		return ErrDocument
	}
	d := json.NewDecoder(bytes.NewReader(append(raw[:n:n], '}')))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// policySeal is the beginning of the first line of a stored policy; the rest of the line is the checksum.
const policySeal = "# check: "

// SealPolicy returns the YAML of a policy after a comment line with its checksum.
func SealPolicy(yaml []byte) []byte {
	return append([]byte(policySeal+checkOf(yaml)+"\n"), yaml...)
}

// OpenPolicy returns the YAML of a policy that SealPolicy made, or ErrDocument if the checksum does not match.
func OpenPolicy(raw []byte) ([]byte, error) {
	line, yaml, found := bytes.Cut(raw, []byte("\n"))
	if !found || string(line) != policySeal+checkOf(yaml) {
		return nil, fmt.Errorf("policy: %w", ErrDocument)
	}
	return yaml, nil
}
