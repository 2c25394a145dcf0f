package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsoleIsSwitchedOrHasALink(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                "",
		"console: true\n": "",
		"console: {}\n":   "",
		"console: {user_link: \"https://crm.example/people/{id}\"}\n":      "https://crm.example/people/{id}",
		"console: {user_link: \"https://crm.example:8443/?q={id}&s=1\"}\n": "https://crm.example:8443/?q={id}&s=1",
	} {
		c, err := Parse("c", []byte(minimal+text))
		require.NoError(t, err, text)
		require.True(t, c.Console, text)
		require.Equal(t, want, c.UserLink)
		require.False(t, c.SecureCookies)
	}
	for text, want := range map[string]bool{
		"console: {secure_cookies: true}\n":                                          true,
		"console: {secure_cookies: false}\n":                                         false,
		"console: {secure_cookies: true, user_link: \"https://crm.example/{id}\"}\n": true,
	} {
		c, err := Parse("c", []byte(minimal+text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.SecureCookies, text)
	}
	for text, rule := range map[string]string{
		"console: maybe\n":                                            "console: must be true or false",
		"console: {secure_cookies: 1}\n":                              "console.secure_cookies: must be true or false",
		"console: {users: x}\n":                                       "console.users: ",
		"console: {user_link: \"\"}\n":                                "console.user_link: must not be empty",
		"console: {user_link: \"http://crm.example/{id}\"}\n":         "must be an https address",
		"console: {user_link: \"javascript:alert({id})\"}\n":          "must be an https address",
		"console: {user_link: \"/people/{id}\"}\n":                    "must be an https address",
		"console: {user_link: \"https://a:b@crm.example/{id}\"}\n":    "must be an https address",
		"console: {user_link: \"https://crm.example/people\"}\n":      "must contain {id}",
		"console: {user_link: \"https://{id}.crm.example/people\"}\n": "must contain {id} after the host name",
		"console: {user_link: \"https://crm.example/a b/{id}\"}\n":    "must be an https address",
	} {
		_, err := Parse("c", []byte(minimal+text))
		require.ErrorContains(t, err, rule, text)
	}
}
