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

// The constant lifetime is the duration of a session, for which a visitor stays signed in.
const lifetime = 8 * time.Hour

// The constant name is the name of the session cookie, and Path is the URL path below which browsers send the cookie.
const (
	name = "capper_console"
	Path = "/console"
)

// The console derives the secrets for session cookies from the constant purpose, so that they differ from the secrets
// for other purposes.
const purpose = "capper console session 1"

// A Session identifies a visitor who has signed in to the console.
type Session struct {
	Key  string    // id of the API key; "": no keys are configured
	Ends time.Time // zero: never
	// Token is a value that every form of the session must contain. Pages of other websites cannot know the token.
	Token string
}

// The type "sessions" creates and reads the session cookies of visitors.
type sessions struct {
	access func() *gate.Control
	clock  func() time.Time
	open   string // token for forms when no API keys are configured
}

// newSessions returns a value of the type sessions. The argument inForce is a function that returns the current API
// keys.
func newSessions(inForce func() *gate.Control, clock func() time.Time) *sessions {
	return &sessions{access: inForce, clock: clock, open: rand.Text()}
}

// Begin returns the cookie for a new session of a visitor with the given API key. If the argument "secure" is true,
// browsers send the session cookie only over TLS.
func (s *sessions) Begin(key string, secure bool) *http.Cookie {
	ends := s.clock().Add(lifetime)
	secret, known := s.access().Seal(purpose)[key]
	if !known {
		return end(secure) // an operator has removed the key in the meantime
	}
	cookie := end(secure)
	cookie.Value, cookie.MaxAge, cookie.Expires = seal(secret, key, ends), int(lifetime.Seconds()), ends
	return cookie
}

// The function end returns a cookie that makes the browser delete its session cookie.
func end(secure bool) *http.Cookie {
	return &http.Cookie{Name: name, Path: Path, MaxAge: -1, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode}
}

// The method Of returns the session to which a request belongs, according to the session cookie. If no API keys are
// configured, every request belongs to a session.
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

// The method Accepts reports whether a form with the given token belongs to the visitor's session.
func (s Session) Accepts(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
}

// The function seal encrypts the end time of a session for its cookie. The encryption also authenticates the id of the
// visitor's API key, so that nobody can replace the id in the cookie by another id.
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

// The function "sealed" returns the cipher AES-256-GCM with the given secret and random nonces.
func sealed(secret [sha256.Size]byte) cipher.AEAD {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // a key of 32 bytes is always valid
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES always has blocks of 16 bytes
	}
	return aead
}

// The function token derives the form token from the session cookie. Only service instances that know the secret can
// compute the form token.
func token(secret [sha256.Size]byte, cookie string) string {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte("form " + cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}
