package app

import (
	"capper/internal/config"
	"capper/internal/server/listen"
)

// MissingFiles is why the service could not start on this machine, which need
// not be the one that the configuration is meant for: files that it names and
// that cannot be read here.
func MissingFiles(cfg *config.Config) (missing []error) {
	if files := cfg.Server.TLS; files.CertFile != "" {
		if _, err := listen.TLSConfig(files.CertFile, files.KeyFile, nil); err != nil {
			missing = append(missing, named("load server.tls", err))
		}
	}
	if _, err := redisTLS(cfg.Store.Redis.TLS); err != nil {
		missing = append(missing, err)
	}
	return missing
}
