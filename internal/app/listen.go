package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"capper/internal/config"
	"capper/internal/console"
	"capper/internal/server/gate"
	"capper/internal/terminal"
)

// An endpoint is a network listener with the HTTP server that handles its requests.
type endpoint struct {
	what     string
	handler  http.Handler
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
}

// The method listen opens all network listeners before one of them accepts requests, so that the start fails if one
// address is wrong.
func (s *Service) listen(context.Context) (err error) {
	cfg := s.config.Server
	var secure *tls.Config
	if cfg.TLS.CertFile != "" {
		if secure, err = gate.TLSConfig(cfg.TLS.CertFile, cfg.TLS.KeyFile, s.logger); err != nil {
			return named("load server.tls", err)
		}
		s.registry.MustRegister(gate.CertificateExpiry(secure))
	}
	public, err := s.open(cfg.Listen)
	if err != nil {
		return err
	}
	pages, err := s.console()
	if err != nil {
		return errors.Join(err, public.Close())
	}
	s.endpoints = []*endpoint{{what: "api", handler: pages(s.api.Public()), listener: public}}
	if cfg.AdminListen != "" {
		admin, err := s.open(cfg.AdminListen)
		if err != nil {
			return errors.Join(err, public.Close())
		}
		s.endpoints = append(s.endpoints, &endpoint{what: "admin", handler: pages(s.api.Admin()), listener: admin})
	}
	s.failed = make(chan error, len(s.endpoints))
	for _, e := range s.endpoints {
		s.serve(e, secure)
	}
	return nil
}

// The method open opens the network listener for a configured address.
func (s *Service) open(address string) (net.Listener, error) {
	listener, err := s.api.Listen(address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = terminal.Hinted(err, "another process uses this address: stop that process, or change server.listen or "+
			"server.admin_listen")
	}
	if errors.Is(err, fs.ErrPermission) {
		err = terminal.Hinted(err, "this user may not open system ports: use a port from 1024 on, behind a load "+
			"balancer if needed, or grant the capability CAP_NET_BIND_SERVICE")
	}
	return listener, err
}

// console() returns a function that adds the console to the handler of a listener. If the console is disabled, the
// returned function does not change the handler.
func (s *Service) console() (func(calls http.Handler) http.Handler, error) {
	if !s.config.Console {
		return func(calls http.Handler) http.Handler { return calls }, nil
	}
	pages, err := console.New(console.Config{
		API: s.api.Inside(), Access: s.api.Access, SignIn: s.api.SignIn, Logger: s.logger, Clock: s.clock,
		Recent: s.recent, Policies: &s.policies, UserLink: s.config.UserLink,
		SecureCookies: s.config.SecureCookies,
	})
	return func(calls http.Handler) http.Handler { return s.api.Beside(calls, console.Path, pages) }, err
}

// keepRecent records recent counts of decisions and the applied policies for the web console, until ctx ends.
func (s *Service) keepRecent(ctx context.Context) {
	if !s.config.Console {
		return
	}
	s.policies.Note(s.clock(), s.api.Limits())
	s.recent.Run(ctx, s.clock, func() console.Totals {
		s.policies.Note(s.clock(), s.api.Limits())
		totals := console.Totals{}
		s.api.Counted(func(what, of string, n float64) { totals[console.Name{Kind: console.Kind(what), Of: of}] += n })
		return totals
	})
}

func (s *Service) serve(e *endpoint, secure *tls.Config) {
	e.server = s.api.HTTPServer(s.calls.counted(e.handler), secure)
	e.serving.Go(func() {
		if err := gate.Serve(e.server, e.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- named("serve "+e.what, err)
		}
	})
	s.logger.Info("listening", "what", e.what, "address", e.listener.Addr().String())
}

// askForCalls makes /readyz report "ready", and notifies the service manager.
func (s *Service) askForCalls(context.Context) error {
	s.api.SetReady(true)
	s.notify(ready)
	return nil
}

// askForNoMore makes /readyz report "not ready", and waits for StopDelay, so that load balancers can notice the change.
// During StopDelay, the service still accepts API calls.
func (s *Service) askForNoMore(context.Context) error {
	s.logger.Info("stopping", "delay", s.config.Server.StopDelay.String(), "timeout",
		s.config.Server.StopTimeout.String())
	s.notify(stopping)
	s.api.BeginStop()
	time.Sleep(s.config.Server.StopDelay)
	return nil
}

// longestCall returns the longest time that an API call may need: waiting in a queue, and then using the store.
func (s *Service) longestCall() time.Duration {
	b := s.config.Server.Bounds
	return b.Timeout(b.BitmapUsers) + b.CallTimeout
}

// drain() refuses new requests and waits for the running requests. After the time limit, drain() closes the connections
// of requests that are still running. At the end, drain() waits until all calls have returned from the store.
func (s *Service) drain(ctx context.Context) error {
	timeout := s.config.Server.StopTimeout
	polite, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var errs []error
	for _, e := range s.endpoints {
		errs = append(errs, e.server.Shutdown(polite))
	}
	late := named("requests were still in progress after "+timeout.String(), errors.Join(errs...))
	for _, e := range s.endpoints {
		_ = e.server.Close() // Shutdown has already returned the error
		e.serving.Wait()
	}
	return errors.Join(late, named("a call is still waiting for the store", s.calls.end(ctx)))
}

// MissingFiles returns an error for each file that the configuration names and that this machine cannot read. An
// operator can ignore the errors of MissingFiles when the configuration is meant for another machine.
func MissingFiles(cfg *config.Config) (missing []error) {
	if files := cfg.Server.TLS; files.CertFile != "" {
		if _, err := gate.TLSConfig(files.CertFile, files.KeyFile, nil); err != nil {
			missing = append(missing, named("load server.tls", err))
		}
	}
	if _, err := redisTLS(cfg.Store.Redis.TLS); err != nil {
		missing = append(missing, err)
	}
	return missing
}
