package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/messages/messagestest"
	"capper/internal/testcluster"
)

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	nothingForbidden(t)
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestALateReleaseRemovesNoLaterSend(t *testing.T) {
	t.Parallel()
	storetest.LateRelease(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock, c.ClockSkew = clock, MaxClockSkew })
	})
}

// A store of images gives the same answers as one of dense ids.
func TestSpreadStoreOnCluster(t *testing.T) {
	t.Parallel()
	nothingForbidden(t)
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return images{openShared(t, func(c *Config) {
			c.Clock, c.IDs = clock, IDs{Kind: "uuid", Check: "1a2b3c4d", Users: 200_000}
		})}
	})
}

func TestCampaignsOnCluster(t *testing.T) {
	t.Parallel()
	nothingForbidden(t)
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestCampaignsOfSpreadStoreOnCluster(t *testing.T) {
	t.Parallel()
	nothingForbidden(t)
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return images{openShared(t, func(c *Config) {
			c.Clock, c.IDs = clock, IDs{Kind: "uuid", Check: "1a2b3c4d", Users: 10_000_000}
		})}
	})
}

// nothingForbidden checks at the end of a suite that the servers of the shared cluster forbade the store's user no
// command, which a store may otherwise survive unseen. The store's user has the rights of deploy/redis.acl.
func nothingForbidden(t *testing.T) {
	t.Cleanup(func() {
		for _, addr := range testcluster.Shared(t) {
			entries, err := admin(t, addr).Do(context.Background(), "acl", "log").Slice()
			require.NoError(t, err)
			for _, entry := range entries {
				require.NotContains(t, entry, leastUser)
			}
		}
	})
}

// images is a spread store whose callers use the numbers of users. Each number stands for its image.
type images struct{ *Store }

func imagesOf(numbers []capping.UserID) []capping.UserID {
	users := make([]capping.UserID, len(numbers))
	for i, n := range numbers {
		users[i] = imageOf(n)
	}
	return users
}

// Filter decides the images of the batch's users.
func (i images) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	mapped := *b
	mapped.Users = imagesOf(b.Users)
	return i.Store.Filter(ctx, &mapped, verdicts)
}

// Release removes sends to the images of users.
func (i images) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	return i.Store.Release(ctx, token, channel, imagesOf(users), released)
}

// Merge merges the logs of the images of users.
func (i images) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	mapped := *m
	mapped.Users = imagesOf(m.Users)
	return i.Store.Merge(ctx, &mapped, merged)
}

// Erase erases the image of the user.
func (i images) Erase(ctx context.Context, user capping.UserID) error {
	return i.Store.Erase(ctx, imageOf(user))
}

// Log returns the log of the user's image.
func (i images) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	return i.Store.Log(ctx, imageOf(user))
}

// Locate returns the place of the user's image.
func (i images) Locate(user capping.UserID) capping.Location { return i.Store.Locate(imageOf(user)) }
