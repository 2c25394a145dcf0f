package topology

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// certificatesEvery is the interval at which the store reads every server's TLS certificate. Open connections stay open
// when a certificate expires. Without regular reads of certificates, an expired certificate would first break a new
// connection after a restart or a network failure.
const certificatesEvery = 30 * time.Second

// watchCertificates reads the certificate of every server at regular intervals.
func (t *Topology) watchCertificates(ctx context.Context) {
	ticker := time.NewTicker(cmp.Or(t.config.CertificatesEvery, certificatesEvery))
	defer ticker.Stop()
	told := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		t.lookAtCertificates(ctx)
		for addr, text := range t.certificateWarnings() {
			if told[addr] == "" {
				t.config.Logger.Warn("Redis certificate", "warning", text)
			}
			told[addr] = text
		}
	}
}

// lookAtCertificates reads the TLS certificates of all nodes, and of other servers with connections, such as Sentinels.
func (t *Topology) lookAtCertificates(ctx context.Context) {
	addrs := slices.Collect(maps.Keys(t.Certificates()))
	for _, n := range t.Nodes() {
		if !strings.HasPrefix(n.addr, "sentinel:") && !slices.Contains(addrs, n.addr) {
			addrs = append(addrs, n.addr)
		}
	}
	var asked sync.WaitGroup
	for _, addr := range addrs {
		asked.Go(func() { t.config.Look(ctx, addr) })
	}
	asked.Wait()
}

// Certificates returns the TLS certificates that servers recently presented, by address. Without TLS, the map of
// certificates is empty.
func (t *Topology) Certificates() map[string]certificate { return t.config.Shown.All() }

// certificateSoon is the remaining lifetime of a server's TLS certificate below which the store warns operators. The
// alert CapperRedisCertificateExpiresSoon uses the same remaining lifetime.
const certificateSoon = 7 * 24 * time.Hour

// certificateWarnings returns warnings by server address: for each server whose TLS certificate new connections reject
// now or will reject soon.
func (t *Topology) certificateWarnings() map[string]string {
	warnings := map[string]string{}
	for addr, c := range t.Certificates() {
		switch left := c.Ends.Sub(t.config.Clock()); {
		case c.Refusal != nil:
			warnings[addr] = fmt.Sprintf("node %s: new connections reject its certificate: %v: %s", addr, c.Refusal,
				cmp.Or(CertificateHint(c.Refusal), "renew it"))
		case left < certificateSoon:
			warnings[addr] = fmt.Sprintf("node %s: its certificate expires at %s: renew it, because new connections "+
				"will fail after that",
				addr, c.Ends.UTC().Format(time.RFC3339))
		}
	}
	return warnings
}
