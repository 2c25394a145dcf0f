package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/config"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/pacing"
	"capper/internal/terminal"
)

// RedisPassword is the name of the environment variable for the Redis password.
const RedisPassword = "CAPPER_REDIS_PASSWORD"

// The interface store lists the methods that both the Redis store and the embedded store have.
type store interface {
	capping.Store
	pacing.Store
	pacing.RecordStore
}

// openStore opens the configured store and wraps it with metrics.
func (s *Service) openStore(ctx context.Context) (err error) {
	opened, err := s.openConfigured(ctx)
	if err != nil {
		return explainStore(err)
	}
	s.store, s.permits, s.kept = opened, opened, opened
	if s.wrapStore != nil {
		s.store = s.wrapStore(s.store)
	}
	if s.store, err = Store(s.store, s.config.Store.Kind, s.registry); err != nil {
		return errors.Join(err, opened.Close())
	}
	if kept, ok := capping.As[live.Store](s.store); ok {
		s.lists.store = kept
		if err := s.segments.Reconsider(ctx); err != nil {
			s.logger.Error("segments: an earlier generation cannot be used", "error", err)
		}
	}
	return nil
}

// closeStore closes the store, after all steps that use the store have ended.
func (s *Service) closeStore(context.Context) error { return s.store.Close() }

// openConfigured opens the configured store, for the kind of user ids that the published segments have.
func (s *Service) openConfigured(ctx context.Context) (store, error) {
	cfg, scheme := s.config.Store, s.ids()
	if cfg.Kind == config.Embedded {
		options := cfg.Embedded
		options.Clock, options.Logger, options.Registerer = s.clock, s.logger, s.registry
		if scheme.Kind() != ids.Dense {
			options.IDs = pebblestore.IDs{Kind: scheme.Kind().String(), Check: scheme.Check()}
		}
		return pebblestore.Open(ctx, options)
	}
	options, err := RedisOptions(cfg.Redis)
	if err != nil {
		return nil, err
	}
	options.Clock, options.Logger, options.Registerer = s.clock, s.logger, s.registry
	options.IDs = redisstore.IDs{Kind: scheme.Kind().String(), Check: scheme.Check(),
		Users: s.segments.Current().KnownIDs()}
	return redisstore.Open(ctx, options)
}

// RedisOptions converts the Redis section of the configuration to options of the store. The certificates and passwords
// come from files and from the environment.
func RedisOptions(cfg config.RedisStore) (options redisstore.Config, err error) {
	options = cfg.Options
	if options.TLS, err = redisTLS(cfg.TLS); err != nil {
		return options, err
	}
	if options.Authorities, err = authorities(cfg.TLS); err != nil {
		return options, err
	}
	options.Password = os.Getenv(RedisPassword)
	options.Credentials, err = credentials(cfg)
	return options, err
}

// credentials() returns a function that returns the Redis user name and password, and reads the password file at each
// call. If no password file is configured, credentials() returns nil.
func credentials(cfg config.RedisStore) (func() (username, password string, err error), error) {
	file := cfg.PasswordFile
	if file == "" {
		return nil, nil
	}
	if os.Getenv(RedisPassword) != "" {
		return nil, errors.New("$" + RedisPassword + " and store.redis.password_file: must not both be set")
	}
	read := func() (string, string, error) {
		text, err := os.ReadFile(file)
		password := strings.TrimRight(string(text), "\r\n")
		if err == nil && password == "" {
			err = errors.New("file is empty")
		}
		return cfg.Options.Username, password, named("read store.redis.password_file "+file, err)
	}
	_, _, err := read()
	return read, err
}

func redisTLS(cfg config.RedisTLS) (*tls.Config, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	secure := &tls.Config{ServerName: cfg.ServerName, MinVersion: tls.VersionTLS12}
	if cfg.CertFile != "" {
		show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
			return &pair, named("load store.redis.tls.cert_file and key_file", err)
		}
		if _, err := show(nil); err != nil {
			return nil, err
		}
		secure.GetClientCertificate = show
	}
	read, err := authorities(cfg)
	if read != nil && err == nil {
		secure.RootCAs, err = read()
	}
	return secure, err
}

// authorities() returns a function that reads the trusted certificate authorities from their file at each call, because
// the file may change. If authorities() returns a nil function, the connection to Redis trusts the certificate
// authorities of the system.
func authorities(cfg config.RedisTLS) (func() (*x509.CertPool, error), error) {
	if !cfg.Enabled || cfg.CAFile == "" {
		return nil, nil
	}
	read := func() (*x509.CertPool, error) {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, named("read store.redis.tls.ca_file", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("store.redis.tls.ca_file " + cfg.CAFile + ": the file contains no PEM certificate")
		}
		return pool, nil
	}
	_, err := read()
	return read, err
}

// explainStore adds advice for operators to an error of opening the store.
func explainStore(err error) error {
	var known *redisstore.HintedError
	switch {
	case redisstore.IsAuth(err):
		return terminal.Hinted(err, "the password is read from $"+RedisPassword+
			" or store.redis.password_file, and the user name from store.redis.username")
	case errors.As(err, &known):
		return terminal.Hinted(err, known.Hint)
	}
	return err
}

// GroupsOfOneSlot returns a warning for each group of pacers whose keys have the same Redis hash slot as the keys of
// another group.
func GroupsOfOneSlot(cfg *config.Config) (warnings []string) {
	if cfg.Store.Kind != config.Redis {
		return nil
	}
	groups := []string{""}
	for i := range cfg.Pacers.Pacers {
		groups = append(groups, cfg.Pacers.Pacers[i].Group)
	}
	shared := redisstore.GroupsOfOneSlot(groups)
	for _, group := range slices.Sorted(maps.Keys(shared)) {
		other := "the pacers without a group"
		if shared[group] != "" {
			other = "the group " + shared[group]
		}
		warnings = append(warnings, fmt.Sprintf("pacers: the group %s has the same Redis slot as %s, so a fault of "+
			"this slot stops both; another name has another slot", group, other))
	}
	return warnings
}
