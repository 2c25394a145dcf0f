package browsertest

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/testkit"
)

// Publish publishes a segments generation from the test data, but adds the given users to the segment "active".
// Publish returns the name of the segments generation that it has published.
func (s *Service) Publish(active ...uint32) (generation string) {
	s.t.Helper()
	location, err := objects.Open(s.t.Context(), filepath.Join(s.Dir, "segments"), objects.S3Config{})
	require.NoError(s.t, err)
	result, err := ingest.Run(s.t.Context(), s.plan(active), ingest.Config{}, func(string) {})
	require.NoError(s.t, err)
	base, err := publish.ReadLiveState(s.t.Context(), location)
	require.NoError(s.t, err)
	publisher := &publish.Publisher{Location: location, ToolVersion: "segmentbuild sample", Clock: s.Clock.Now}
	published, err := publisher.Publish(s.t.Context(), result.Candidate, base, "")
	require.NoError(s.t, err)
	return published.Manifest.Generation
}

func (s *Service) plan(active []uint32) *ingest.Plan {
	input := func(name string) ingest.Input {
		return ingest.Input{Path: filepath.Join(testkit.Root(), "testdata", name)}
	}
	plan := &ingest.Plan{}
	for _, name := range []string{"new.csv", "active.txt", "lapsed.txt", "vip.csv"} {
		segment, _, _ := strings.Cut(name, ".")
		plan.Segments = append(plan.Segments, ingest.Definition{Name: segment,
			Inputs: []ingest.Input{input("segments/" + name)}})
	}
	if len(active) > 0 {
		joined := filepath.Join(s.t.TempDir(), "joined.txt")
		require.NoError(s.t, os.WriteFile(joined, []byte(lines(active)), 0o600))
		plan.Segments[1].Inputs = append(plan.Segments[1].Inputs, ingest.Input{Path: joined})
	}
	plan.Sets = []ingest.Definition{{Name: "opted-out", Publish: true,
		Inputs: []ingest.Input{input("sets/opted-out.txt")}, Growth: publish.Growth{Said: true, OnlyGrows: true}}}
	plan.AddSetTable("country/", input("sets/countries.csv"))
	plan.AddSetTable("tz/", input("sets/timezones.csv"))
	return plan
}

func lines(users []uint32) (text string) {
	for _, u := range users {
		text += strconv.FormatUint(uint64(u), 10) + "\n"
	}
	return text
}

// Audience returns the users in the sample audience file of the test data.
func (s *Service) Audience() (users []uint32) {
	s.t.Helper()
	file, err := os.Open(filepath.Join(testkit.Root(), "testdata", "audience.txt"))
	require.NoError(s.t, err)
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		id, err := strconv.ParseUint(scanner.Text(), 10, 32)
		require.NoError(s.t, err)
		users = append(users, uint32(id))
	}
	return users
}

// The method Samples makes the API calls of a day of campaigns, each call at its own time of the day. The calls in the
// sample day include large campaigns, a retry, a release, an audience expression, previews and permits. During the
// sample day, Samples also publishes a new segments generation.
func (s *Service) Samples() {
	s.t.Helper()
	audience := s.Audience()
	half := len(audience) / 2
	if s.setup.History {
		s.history(audience)
	}
	s.at(25*time.Hour, func() { s.send("welcome", "push", audience) })
	s.at(20*time.Hour, func() { s.send("newsletter-11", "email", audience[:half]) })
	s.at(19*time.Hour, func() { s.send("newsletter-11", "email", audience[:half]) }) // a retry
	s.at(7*time.Hour, func() { s.send("reminder", "push", audience) })
	s.at(6*time.Hour, func() { s.joined() })
	s.at(5*time.Hour+30*time.Minute, func() { s.release("welcome", "push", audience[half:half+300]) })
	s.at(5*time.Hour, func() {
		s.filter(&client.FilterRequest{MessageID: "spring", Channel: "email",
			Audience: &client.Audience{Expression: "engaged - country/us"}})
	})
	s.at(4*time.Hour, func() { s.send("flash-sale", "sms", audience[half:]) })
	for minute := 55; minute > 0; minute -= s.setup.every() {
		s.at(time.Duration(minute)*time.Minute, func() {
			part := audience[minute*20 : minute*20+100+7*minute%60]
			s.send("promo-7", "push", part)
			s.filter(&client.FilterRequest{Channel: "push", Users: part, Preview: true})
		})
	}
	s.at(time.Second, s.permits)
	s.at(0, func() {})
}

// The method history makes the calls of campaigns in the week before, at the hours that the Overview page compares. The
// method also sets titles of messages.
func (s *Service) history(audience []uint32) {
	const week = 7 * 24 * time.Hour
	s.at(week+50*time.Hour, func() { s.send("winter", "push", audience[:len(audience)*2/3]) })
	s.at(week+26*time.Hour, func() { s.send("winter", "email", audience[:len(audience)/3]) })
	s.at(week+5*time.Hour, func() { s.send("february", "push", audience[len(audience)/4:]) })
	for id, title := range map[string]string{"winter": "Winter sale", "reminder": "Reminder: your basket",
		"spring": "Spring sale", "welcome": "Welcome"} {
		_, err := s.Client(Engine).SetTitle(s.t.Context(), id, "", title)
		require.NoError(s.t, err)
	}
}

// The method "at" sets the clock of the test service to the given duration before the end of the sample day, and calls
// the function "act".
func (s *Service) at(before time.Duration, act func()) {
	s.Clock.Set(s.ends.Add(-before))
	act()
	if s.setup.Slowly {
		<-time.After(1100 * time.Millisecond) // the console reads its counters once a second
	}
}

// The method "every" returns the number of minutes between two sample calls in the last hour of the sample day.
func (s *Setup) every() int {
	if s.Slowly {
		return 2
	}
	return 5
}

// The method "joined" publishes a segments generation (version) with more active users, and waits until the service
// uses this generation.
func (s *Service) joined() (generation string) {
	s.t.Helper()
	generation = s.Publish(9001, 9002, 9003, 9004, 9005, 9006, 9007)
	testkit.Eventually(s.t, func() bool {
		var status api.Status
		s.Get("/v1/status", &status)
		return status.Segments.Generation == generation
	})
	return generation
}

// The method send makes a filter call that decides and records a message for users.
func (s *Service) send(message, channel string, users []uint32) {
	s.filter(&client.FilterRequest{MessageID: message, Channel: channel, Users: users})
}

func (s *Service) filter(r *client.FilterRequest) {
	s.t.Helper()
	_, err := s.Client(Engine).Filter(s.t.Context(), r)
	require.NoError(s.t, err)
}

func (s *Service) release(message, channel string, users []uint32) {
	s.t.Helper()
	_, err := s.Client(Engine).Release(s.t.Context(), &client.ReleaseRequest{MessageID: message, Channel: channel,
		Users: users})
	require.NoError(s.t, err)
}

// The method "permits" requests some of the permits of one sample pacer, and all permits of another sample pacer.
func (s *Service) permits() {
	s.t.Helper()
	for _, r := range []api.PermitsRequest{
		{Pacers: []string{"twilio"}, Permits: 60, RequestID: "sample-1"},
		{Pacers: []string{"carrier"}, Permits: 5000, MaxWait: api.Wait(20 * time.Second), RequestID: "sample-2"},
	} {
		_, err := s.Client(Engine).Permits(s.t.Context(), r)
		require.NoError(s.t, err)
	}
}
