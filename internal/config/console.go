package config

import (
	"net/url"
	"strings"

	"capper/internal/yamltree"
)

// userMark is the placeholder in a configured link that the console replaces by the user id.
const userMark = "{id}"

// The method console reads the key "console", which is a boolean, or a mapping with the settings of an enabled console.
func (r *reader) console(v yamltree.Value) {
	if !v.IsMapping() {
		yamltree.Bool(&r.Console)(v)
		return
	}
	v.Object(map[string]yamltree.Field{"user_link": r.userLink, "secure_cookies": yamltree.Bool(&r.SecureCookies)})
}

// userLink reads the key "console.user_link": the address of a user's page in another system.
func (r *reader) userLink(v yamltree.Value) {
	yamltree.Text(&r.UserLink)(v)
	if r.UserLink == "" {
		return
	}
	at, err := url.Parse(strings.ReplaceAll(r.UserLink, userMark, "id"))
	host, _, _ := strings.Cut(strings.TrimPrefix(r.UserLink, "https://"), "/")
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "" || at.User != nil ||
		strings.ContainsAny(r.UserLink, " \\"):
		v.Fault("must be an https address such as https://crm.example/people/{id}, got %s", v.Describe())
	case strings.Contains(host, userMark):
		v.Fault("must contain {id} after the host name, got %s", v.Describe())
	case !strings.Contains(r.UserLink, userMark):
		v.Fault("must contain {id}, which stands for the id of the user, got %s", v.Describe())
	}
}
