package gate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A certificate is a TLS certificate from two files, which capper reads again when they change.
type certificate struct {
	certFile, keyFile string
	clock             func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	checked time.Time
	stamp   [2]fileStamp
	current *tls.Certificate
}

// fileStamp holds attributes of a certificate file. If an attribute of the file changes, capper reloads the file.
type fileStamp struct {
	modified time.Time
	size     int64
}

// The constant recheck is the interval at which capper checks whether the certificate files have changed.
const recheck = time.Second

// TLSConfig returns a TLS configuration with the certificate chain and the key in two PEM files, for TLS 1.2 or
// later. If the files change, capper reloads them within a second. If the new certificate and key do not fit
// together, the previous certificate stays in use and the error is logged. A nil logger discards log lines.
func TLSConfig(certFile, keyFile string, logger *slog.Logger) (*tls.Config, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &certificate{certFile: certFile, keyFile: keyFile, clock: time.Now, log: logger}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{ // for TLS 1.2 only, without CBC and RSA key exchange; TLS 1.3 suites are fixed
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.fresh(), nil
		},
	}, nil
}

// CertificateExpiry returns a metric with the expiry time of the certificate in the TLS configuration.
func CertificateExpiry(config *tls.Config) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_tls_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the TLS certificate of the service expires.",
	}, func() float64 {
		current, err := config.GetCertificate(nil)
		if err != nil || current.Leaf == nil {
			return 0
		}
		return float64(current.Leaf.NotAfter.Unix())
	})
}

// load() reads the certificate and the key from their files. The caller of load() must hold the lock c.mu, or be the
// only goroutine that uses the certificate c.
func (c *certificate) load() error {
	stamp, err := c.stamps()
	if err != nil {
		return err
	}
	c.stamp, c.checked = stamp, c.clock()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("load TLS certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current = &pair
	return nil
}

func (c *certificate) stamps() (stamps [2]fileStamp, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return stamps, fmt.Errorf("TLS file: %w", err)
		}
		stamps[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// fresh() returns the TLS certificate for a new connection. Once a second, fresh() checks whether the certificate files
// have changed.
func (c *certificate) fresh() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); now.Sub(c.checked) >= recheck {
		c.checked = now
		stamps, err := c.stamps()
		if err == nil && stamps != c.stamp {
			err = c.load()
		}
		if err != nil {
			c.log.Warn("TLS files could not be reloaded, the previous certificate stays in use", "error", err)
		}
	}
	return c.current
}
