package frame

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
)

// The console derives the secrets that encrypt data in addresses from sealPurpose, so that they differ from the secrets
// for other purposes.
const sealPurpose = "capper console data 1"

// maxUnsealed is the maximum size in bytes of decrypted and decompressed data from an address.
const maxUnsealed = 1 << 20

// sealData compresses data, and encrypts it with a secret that is derived from an API key. The text that sealData
// returns begins with the id of the API key.
func (s *sessions) sealData(key string, data []byte) string {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // this level is always valid
	_, _ = w.Write(data)                                    // writing to a buffer never fails
	_ = w.Close()
	sum := sealed(s.dataSecret(key)).Seal(nil, nil, packed.Bytes(), []byte(key))
	return key + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// openData decrypts a text that sealData has created.
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

// dataSecret returns the secret, derived from an API key, for encrypting data in addresses. If no API keys are
// configured, dataSecret returns a random secret of the process.
func (s *sessions) dataSecret(key string) [sha256.Size]byte {
	if secret, known := s.access().Seal(sealPurpose)[key]; known {
		return secret
	}
	return sha256.Sum256([]byte(sealPurpose + s.open))
}
