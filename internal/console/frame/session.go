// Package session says who visits the console: it seals the id of a key into a cookie
// when somebody has signed in with it, and opens it again.
//
// A session is sealed (AES-256-GCM) with a secret that follows from the SHA-256 of its key
// as it is configured. So every instance that has the key reads it, and nobody else's; a
// key that is removed or replaced ends its sessions; nothing is stored. Whoever can read
// the configuration file can make one: it is as secret as a key.
package frame

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"capper/internal/server/gate"
)

// lifetime is how long a session lasts.
const lifetime = 8 * time.Hour

// name is that of the cookie, Path where it is sent.
const (
	name = "capper_console"
	Path = "/console"
)

// purpose tells the secrets of sessions from those of anything else.
const purpose = "capper console session 1"

// Session is who visits.
type Session struct {
	Key  string    // the id of the key; "" where there are no keys
	Ends time.Time // zero: never
	// Token goes with every form of the session: a page of elsewhere does not know it.
	Token string
}

// sessions opens and seals sessions.
type sessions struct {
	access func() *gate.Control
	clock  func() time.Time
	open   string // the token while there are no keys
}

// newSessions is the sessions of the keys in force.
func newSessions(inForce func() *gate.Control, clock func() time.Time) *sessions {
	return &sessions{access: inForce, clock: clock, open: rand.Text()}
}

// Begin is the cookie of a new session of whoever has shown the key of that id.
// secure: it is sent over TLS only.
func (s *sessions) Begin(key string, secure bool) *http.Cookie {
	ends := s.clock().Add(lifetime)
	secret, known := s.access().Seal(purpose)[key]
	if !known {
		return end(secure) // it has been removed since
	}
	cookie := end(secure)
	cookie.Value, cookie.MaxAge, cookie.Expires = seal(secret, key, ends), int(lifetime.Seconds()), ends
	return cookie
}

// end is the cookie that removes a session.
func end(secure bool) *http.Cookie {
	return &http.Cookie{Name: name, Path: Path, MaxAge: -1, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode}
}

// Of is the session of a request. Where there are no keys everybody has one.
func (s *sessions) Of(r *http.Request) (Session, bool) {
	inForce := s.access()
	if !inForce.HasKeys() {
		return Session{Token: s.open}, true
	}
	cookie, err := r.Cookie(name)
	if err != nil {
		return Session{}, false
	}
	for id, secret := range inForce.Seal(purpose) {
		ends, ok := unseal(secret, id, cookie.Value)
		if ok && s.clock().Before(ends) && inForce.May(id, gate.ScopeRead) {
			return Session{Key: id, Ends: ends, Token: token(secret, cookie.Value)}, true
		}
	}
	return Session{}, false
}

// Accepts reports whether the token of a form is the session's.
func (s Session) Accepts(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
}

// seal is the end, which names the key by what it is sealed with, and for.
func seal(secret [sha256.Size]byte, key string, ends time.Time) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(ends.Unix()))
	return base64.RawURLEncoding.EncodeToString(sealed(secret).Seal(nil, nil, plain, []byte(key)))
}

func unseal(secret [sha256.Size]byte, key, value string) (ends time.Time, ok bool) {
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return time.Time{}, false
	}
	plain, err := sealed(secret).Open(nil, nil, bytes, []byte(key))
	if err != nil || len(plain) != 8 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(plain)), 0), true
}

// sealed is AES-256-GCM with a nonce of its own making.
func sealed(secret [sha256.Size]byte) cipher.AEAD {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return aead
}

// token follows from the cookie, and cannot be found without the secret.
func token(secret [sha256.Size]byte, cookie string) string {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte("form " + cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}
