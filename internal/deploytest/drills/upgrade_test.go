//go:build storms

package drills

import (
	"capper/internal/testcluster"
	"capper/internal/testkit"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two instances behind a balancer, one replaced after the other under load: no call fails, no user is
// unavailable, and the limits are those of one fleet throughout.
func TestAnUpgradeIsNotNoticed(t *testing.T) {
	t.Parallel()
	place := newPlace(t, testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 10 * time.Second}).Addrs)
	before := os.Getenv("CAPPER_DRILL_BEFORE")
	one, two := freeAddr(t), freeAddr(t)
	first, second := place.start(one, before, ""), place.start(two, before, "")
	load := newLoad(t, balance(t, one, two))
	load.goOn(100)
	for _, old := range []*instance{first, second} {
		old.stop()
		load.goOn(50)
		renewed := place.start(old.addr, "", "log: {format: json}\n")
		testkit.Eventually(t, func() bool { return renewed.asked() > 20 }, "the balancer has taken it back")
	}
	load.goOn(50)
	require.Empty(t, load.failures())
	load.settle()
}

var filterCalls = regexp.MustCompile(`(?m)^capper_http_requests_total\{.*/v1/filter.*\} (\d+)`)

// asked is how many filter calls it has answered.
func (i *instance) asked() (calls int) {
	response, err := http.Get("http://" + i.addr + "/metrics")
	require.NoError(i, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(i, err)
	for _, m := range filterCalls.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(m[1]))
		require.NoError(i, err)
		calls += n
	}
	return calls
}
