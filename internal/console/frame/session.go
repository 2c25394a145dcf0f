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

// lifetime is the duration of a session.
const lifetime = 8 * time.Hour

// The session cookie has this name and this path.
const (
	name = "capper_console"
	Path = "/console"
)

// purpose separates the secrets of sessions from secrets for other purposes.
const purpose = "capper console session 1"

// Session identifies a visitor.
type Session struct {
	Key  string    // the id of the key; "" where there are no keys
	Ends time.Time // zero: never
	// Token is part of every form of the session. A page of another site cannot know it.
	Token string
}

// sessions opens and seals session cookies.
type sessions struct {
	access func() *gate.Control
	clock  func() time.Time
	open   string // the token when no keys are configured
}

// newSessions returns the sessions for the current keys.
func newSessions(inForce func() *gate.Control, clock func() time.Time) *sessions {
	return &sessions{access: inForce, clock: clock, open: rand.Text()}
}

// Begin returns the cookie of a new session for the key with the given id. With secure, browsers send the cookie over
// TLS only.
func (s *sessions) Begin(key string, secure bool) *http.Cookie {
	ends := s.clock().Add(lifetime)
	secret, known := s.access().Seal(purpose)[key]
	if !known {
		return end(secure) // the key has been removed since
	}
	cookie := end(secure)
	cookie.Value, cookie.MaxAge, cookie.Expires = seal(secret, key, ends), int(lifetime.Seconds()), ends
	return cookie
}

// end returns the cookie that removes a session.
func end(secure bool) *http.Cookie {
	return &http.Cookie{Name: name, Path: Path, MaxAge: -1, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode}
}

// Of returns the session of a request. Without configured keys, every request has a session.
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

// Accepts reports whether the token of a form belongs to the session.
func (s Session) Accepts(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
}

// seal encrypts the end of a session. The key's id is authenticated together with the end, so that nobody can
// exchange it.
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

// sealed returns AES-256-GCM with random nonces.
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

// token derives the form token from the cookie. Without the secret nobody can compute it.
func token(secret [sha256.Size]byte, cookie string) string {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte("form " + cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}
