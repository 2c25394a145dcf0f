package frame

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
)

// sealPurpose separates the secrets of sealed data from secrets for other purposes.
const sealPurpose = "capper console data 1"

// maxUnsealed is the maximum size of sealed data in bytes.
const maxUnsealed = 1 << 20

// sealData compresses and encrypts data with the secret of a key. The text begins with the id of the key.
func (s *sessions) sealData(key string, data []byte) string {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // the level is valid
	_, _ = w.Write(data)                                    // a buffer takes every byte
	_ = w.Close()
	sum := sealed(s.dataSecret(key)).Seal(nil, nil, packed.Bytes(), []byte(key))
	return key + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// openData is the reverse of sealData.
func (s *sessions) openData(text string) ([]byte, bool) {
	dot := strings.LastIndexByte(text, '.')
	if dot < 0 {
		return nil, false
	}
	inForce := s.access()
	if _, known := inForce.Seal(sealPurpose)[text[:dot]]; known != inForce.HasKeys() {
		return nil, false
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text[dot+1:])
	if err != nil {
		return nil, false
	}
	packed, err := sealed(s.dataSecret(text[:dot])).Open(nil, nil, sum, []byte(text[:dot]))
	if err != nil {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxUnsealed+1))
	return data, err == nil && len(data) <= maxUnsealed
}

// dataSecret returns the secret of a key, or that of the process where there are no keys.
func (s *sessions) dataSecret(key string) [sha256.Size]byte {
	if secret, known := s.access().Seal(sealPurpose)[key]; known {
		return secret
	}
	return sha256.Sum256([]byte(sealPurpose + s.open))
}
