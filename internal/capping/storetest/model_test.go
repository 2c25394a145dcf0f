package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestModelKnowsEveryCalendar checks that the model knows every calendar that random policies use.
func TestModelKnowsEveryCalendar(t *testing.T) {
	t.Parallel()
	m := newModel(&rules{}, &world{})
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, calendar := range capping.Calendars() {
		require.Contains(t, units(), string(calendar))
		l := limit{unit: string(calendar)}
		period := (&capping.Limit{Calendar: calendar}).Rule(capping.InstantOf(at), 0)
		require.Equal(t, period.Until.Time().UTC(), m.end(l, time.UTC, at), "the model has another %s", calendar)
	}
}
