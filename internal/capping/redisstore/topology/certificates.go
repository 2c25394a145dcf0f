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

// certificatesEvery is how often every server is asked for its certificate: connections that stand outlive one
// that has expired, and the next connection, after a restart or a break of the network, would be the first to see it.
const certificatesEvery = 30 * time.Second

// watchCertificates asks every server for its certificate from time to time.
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

// lookAtCertificates asks the nodes, and every other server that there is a connection to, such as Sentinels.
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

// Certificates are those that servers showed lately, by address; none without TLS.
func (t *Topology) Certificates() map[string]certificate { return t.config.Shown.All() }

// certificateSoon is how long before its end a certificate is a warning, as CapperRedisCertificateExpiresSoon has it.
const certificateSoon = 7 * 24 * time.Hour

// certificateWarnings are the servers that new connections refuse, or will refuse soon.
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
