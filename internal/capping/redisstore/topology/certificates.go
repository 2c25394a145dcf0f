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

// certificatesEvery is the interval at which the store reads the TLS certificates of all servers. When a certificate
// expires, open connections stay open. Without regular reads of certificates, the store would notice an expired
// certificate only at a new connection, after a restart or a network failure.
const certificatesEvery = 30 * time.Second

// watchCertificates reads the TLS certificate of every server at a fixed interval, and logs warnings.
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

// lookAtCertificates reads the TLS certificates of all nodes, and of other servers to which the store connects, such as
// Sentinels.
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

// Certificates returns the TLS certificates that servers have shown recently, by the servers' addresses. Without TLS,
// the map of certificates is empty.
func (t *Topology) Certificates() map[string]certificate { return t.config.Shown.All() }

// If the remaining lifetime of a server's TLS certificate is shorter than certificateSoon, the store warns operators.
// The alert CapperRedisCertificateExpiresSoon uses the same limit.
const certificateSoon = 7 * 24 * time.Hour

// certificateWarnings returns warnings by the address of the server. A server gets a warning if new connections reject
// its TLS certificate now or will reject it soon.
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
