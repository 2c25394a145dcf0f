package pebblestore

import (
	"testing"
	"time"

	"capper/internal/campaign/campaigntest"
)

func TestCampaigns(t *testing.T) {
	t.Parallel()
	campaigntest.Run(t, func(t *testing.T, clock func() time.Time) campaigntest.Store { return openDefault(t, clock).(*Store) })
}
