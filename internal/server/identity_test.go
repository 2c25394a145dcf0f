package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/server/gate"
)

// teams configures two teams with a namespace each, and one team without.
func teams(cfg *server.Config) {
	keys := []gate.Key{
		key("g1.growth", "growth-engine", gate.ScopeFilter, gate.ScopeExempt),
		key("c1.crm", "crm-engine", gate.ScopeFilter, gate.ScopeExempt),
		key("o1.old", "old-engine", gate.ScopeFilter, gate.ScopeRead, gate.ScopeExempt),
	}
	keys[0].Namespace, keys[1].Namespace = "growth", "crm"
	cfg.Access = gate.Rules{Keys: keys}
}

// as returns the service with calls by the given key.
func (s *service) as(key string) *service {
	other := *s
	other.key = key
	return &other
}

// TestSendsAreOfANamespaceAndAChannel checks that the same id in two namespaces, or on two channels, stands for
// separate sends, which are counted and released separately.
func TestSendsAreOfANamespaceAndAChannel(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		users := span(1000, 21_000)
		newsletter := func(channel string) fields {
			body := fields{"message_id": "newsletter", "enforce": false, "user_ids": users}
			if channel != "" {
				body["channel"] = channel
			}
			return body
		}
		calls := []struct{ key, channel string }{
			{"g1.growth", "push"}, {"g1.growth", "email"}, {"g1.growth", ""}, {"c1.crm", "push"}, {"o1.old", "push"},
		}
		for _, replayed := range []int{0, len(users)} {
			for _, c := range calls {
				got := s.as(c.key).filter(newsletter(c.channel))
				require.Len(t, got.Allowed, len(users))
				require.Equal(t, replayed, got.Summary.Replayed, "%v", c)
				s.clock.Advance(time.Second)
			}
		}
		require.Equal(t, []sent{
			{"2037-11-20T09:12:44.120Z", at("push"), at("growth"), at("newsletter")},
			{"2037-11-20T09:12:45.120Z", at("email"), at("growth"), at("newsletter")},
			{"2037-11-20T09:12:46.120Z", nil, at("growth"), at("newsletter")},
			{"2037-11-20T09:12:47.120Z", at("push"), at("crm"), at("newsletter")},
			{"2037-11-20T09:12:48.120Z", at("push"), at(""), at("newsletter")},
		}, s.explainedSends(t, 20_999))

		release := func(key, body string, want int) {
			t.Helper()
			r := s.as(key).call(http.MethodPost, "/v1/release", body)
			require.Equal(t, http.StatusOK, r.status, "%s", r.body)
			require.Len(t, decodeAs[released](t, r.body).Released, want)
		}
		// another team's
		release("c1.crm", `{"message_id": "newsletter", "channel": "email", "user_ids": [1001, 1002]}`, 0)
		release("g1.growth", `{"message_id": "newsletter", "channel": "email", "user_ids": [1001, 1002]}`, 2)
		release("o1.old", `{"message_id": "newsletter", "user_ids": [1001]}`, 1)
		release("g1.growth", `{"message_id": "newsletter", "user_ids": [1001]}`, 1)
		require.Equal(t, []sent{{"2037-11-20T09:12:47.120Z", at("push"), at("crm"), at("newsletter")}},
			s.explainedSends(t, 1001))
		require.Len(t, s.explainedSends(t, 1002), 4)
		require.Len(t, s.explainedSends(t, 1003), 5)
	}, teams)
}

func (s *service) explainedSends(t *testing.T, user int) []sent {
	t.Helper()
	return decodeAs[explained](t, s.as("o1.old").get(fmt.Sprintf("/v1/users/%d", user)).body).Sends
}

// TestANamespaceIsAnotherIdentity checks that sends of keys without a namespace stay separate from those with one.
func TestANamespaceIsAnotherIdentity(t *testing.T) {
	t.Parallel()
	s := newService(t, teams)
	body := fields{"message_id": "promo", "channel": "push", "user_ids": []uint32{1}}
	require.Equal(t, []uint32{1}, s.as("o1.old").filter(body).Allowed)
	require.Equal(t, []uint32{1}, s.as("o1.old").filter(body).Replayed)
	denied := s.as("g1.growth").filter(body)
	require.Empty(t, denied.Allowed, "the user's one send of the day is another team's")
	require.Len(t, denied.Denied, 1)
	preview := s.as("g1.growth").filter(fields{"message_id": "promo", "channel": "push", "user_ids": []uint32{1},
		"record": false})
	require.Empty(t, preview.Replayed)
}

func TestReleaseOfAChannelIsChecked(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for body, message := range map[string]string{
		`{"message_id": "m", "channel": "fax", "user_ids": [1]}`:                     `"fax" is not a configured channel (configured channels: email, push, sms)`,
		`{"message_id": "m", "channel": "", "user_ids": [1]}`:                        "must not be empty: leave the field out for all sends of the id",
		`{"message_id": "m", "channel": null, "user_ids": [1]}`:                      "null is not a string",
		`{"message_id": "m", "namespace": "x", "user_ids": [1]}`:                     "this call has no such field",
		`{"message_id": "m", "channel": "push", "channel": "push", "user_ids": [1]}`: "the field is given twice",
	} {
		r := s.call(http.MethodPost, "/v1/release", body)
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Contains(t, r.failure(t).Error.Message, message)
	}
}
