package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/config"
)

// redisPassword is the environment variable of the Redis password.
const redisPassword = "CAPPER_REDIS_PASSWORD"

// openStore opens the configured store.
func openStore(ctx context.Context, cfg config.Store, logger *slog.Logger, registry prometheus.Registerer) (capping.Store, error) {
	if cfg.Kind == config.Embedded {
		return pebblestore.Open(ctx, pebblestore.Config{
			Path: cfg.Embedded.Path, CacheBytes: cfg.Embedded.CacheSize, Clock: time.Now, Logger: logger, Registerer: registry,
		})
	}
	secure, err := redisTLS(cfg.Redis.TLS)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, redisstore.Config{
		Addrs: cfg.Redis.Addrs, SentinelMaster: cfg.Redis.Master,
		Username: cfg.Redis.Username, Password: os.Getenv(redisPassword), TLS: secure,
		ReplicaAcks: acks(cfg.Redis.ReplicaAcks), ClockSkew: cfg.Redis.ClockSkew,
		Clock: time.Now, Logger: logger, Registerer: registry,
	})
}

func acks(replicas int) redisstore.Acks {
	if replicas == config.HealthyReplicas {
		return redisstore.Healthy
	}
	return redisstore.FixedAcks(replicas)
}

func redisTLS(cfg config.RedisTLS) (*tls.Config, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	secure := &tls.Config{ServerName: cfg.ServerName, MinVersion: tls.VersionTLS12}
	if cfg.CAFile == "" {
		return secure, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, named("read store.redis.tls.ca_file", err)
	}
	secure.RootCAs = x509.NewCertPool()
	if !secure.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("store.redis.tls.ca_file " + cfg.CAFile + ": holds no PEM certificate")
	}
	return secure, nil
}

// explainStore adds what an operator can do about an error.
func explainStore(err error) error {
	var known *redisstore.HintedError
	switch {
	case redisstore.IsAuth(err):
		return hinted{err, "the password comes from $" + redisPassword + " or store.redis.password_file, the user from store.redis.username"}
	case errors.As(err, &known):
		return hinted{err, known.Hint}
	}
	return err
}
