package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDocument says that a document of a location is not what was written.
var ErrDocument = errors.New("document is damaged: its checksum does not match")

// The last member of a sealed document, and the end of it.
const (
	sealBegin = `,"check":"`
	sealEnd   = "\"}\n"
)

// checkDigits is how many hex digits of the SHA-256 of what is before it a check has.
const checkDigits = 32

func checkOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:checkDigits]
}

// Seal writes a document, such as an Entry or an Erasure, as a JSON object that ends with a
// check of itself. The document must have a member.
func Seal(document any) ([]byte, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	body = body[:len(body)-1]
	return append(body, sealBegin+checkOf(body)+sealEnd...), nil
}

// Unseal reads what Seal wrote, and nothing else: ErrDocument for other bytes.
func Unseal(raw []byte, into any) error {
	n := len(raw) - len(sealBegin) - checkDigits - len(sealEnd)
	if n < 1 || string(raw[n:]) != sealBegin+checkOf(raw[:n])+sealEnd {
		return ErrDocument
	}
	d := json.NewDecoder(bytes.NewReader(append(raw[:n:n], '}')))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// policySeal begins the first line of a policy.
const policySeal = "# check: "

// SealPolicy puts a check of the YAML before it, in a comment.
func SealPolicy(yaml []byte) []byte {
	return append([]byte(policySeal+checkOf(yaml)+"\n"), yaml...)
}

// OpenPolicy is the YAML of a sealed policy; ErrDocument where the check does not hold.
func OpenPolicy(raw []byte) ([]byte, error) {
	line, yaml, found := bytes.Cut(raw, []byte("\n"))
	if !found || string(line) != policySeal+checkOf(yaml) {
		return nil, fmt.Errorf("policy: %w", ErrDocument)
	}
	return yaml, nil
}
