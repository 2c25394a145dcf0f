package app

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/server"
)

// reloadInterval is the interval at which the service checks the configuration file for changes.
const reloadInterval = time.Second

func newReloads() *prometheus.CounterVec {
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_config_reloads_total",
		Help: "Number of times that capper loaded a changed configuration file, by result: accepted or refused.",
	}, []string{"result"})
	reloads.WithLabelValues("accepted")
	reloads.WithLabelValues("refused")
	return reloads
}

// refusedConfig returns a metric that is 1 while the service rejects the changed configuration file, and otherwise 0.
func (s *Service) refusedConfig() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_config_refused",
		Help: "1 while capper rejects the changed configuration file and keeps the earlier configuration, otherwise 0.",
	}, func() float64 {
		if s.watcher.Status().Error != "" {
			return 1
		}
		return 0
	})
}

// watchConfig applies every valid change of the configuration file until ctx ends.
func (s *Service) watchConfig(ctx context.Context) {
	s.watcher.Run(ctx, reloadInterval, s.reload, func(err error) {
		result := "accepted"
		if err != nil {
			result = "refused"
		}
		s.reloads.WithLabelValues(result).Inc()
		s.reportReload(result, err)
	}, s.asked, s.answerReload)
}

// answerReload logs the result of a reload that an operator requested, unless reportReload has already logged the
// result.
func (s *Service) answerReload(changed bool) {
	status := s.watcher.Status()
	switch {
	case changed:
	case status.Error != "":
		s.logger.Error("configuration still rejected, the previous one stays in force",
			"version", status.Version, "error",
			status.Error)
	default:
		s.logger.Info("configuration unchanged", "version", status.Version)
	}
	s.notify(reloading, ready)
}

// The method notify sends states of the service to the service manager (such as systemd), if there is one.
func (s *Service) notify(states ...string) {
	for _, state := range states {
		if err := notify(s.manager, state); err != nil {
			s.logger.Warn("systemd could not be notified", "state", state, "error", err)
		}
	}
}

// The method reload applies a new configuration as a whole. If any part of the new configuration is not acceptable,
// reload() returns an error and keeps the previous configuration.
func (s *Service) reload(cfg *config.Config) error {
	if err := s.lacks(cfg, s.segments.Current()); err != nil {
		return err // before announce, because the service tries a rejected reload repeatedly
	}
	if err := s.lostZones(cfg.Policy, s.capper.Policy()); err != nil {
		return err
	}
	if err := s.announce(context.Background(), cfg.Policy); err != nil {
		return err
	}
	if err := s.take(cfg); err != nil {
		_ = s.announce(context.Background(), s.capper.Policy()) // announces the previous policy again
		return err
	}
	return nil
}

// take() applies a configuration. Before a call of take(), the caller must send the policy of the new configuration to
// the other instances (announce).
func (s *Service) take(cfg *config.Config) error {
	inForce := s.capper.Policy()
	if err := s.lacks(cfg, s.segments.Current()); err != nil {
		return err // a new generation came into use after the check in reload
	}
	if err := s.lostZones(cfg.Policy, inForce); err != nil {
		return err
	}
	if err := s.api.SetAccess(cfg.Server.Access); err != nil {
		return err
	}
	s.level.Set(cfg.Log.Level)
	s.shortened.note(inForce, cfg.Policy, s.clock())
	for _, lost := range s.unsuppressed.note(inForce, cfg.Policy, s.clock()) {
		s.logger.Warn("a reload removed a suppression", "set", lost.Set, "now_sent", lost.Sends)
	}
	s.journal.SetPolicy(context.Background(), cfg.Policy.Version, cfg.PolicyText) // before a record uses this version
	s.pacers.SetPolicy(cfg.Pacers)
	s.lists.take(cfg)
	s.audiences.take(cfg) // before a call uses the policy
	s.capper.SetPolicy(cfg.Policy)
	s.noteSilences(cfg.Policy)
	return nil
}

// noteSilences computes, for the status, the days on which the quiet hours of the policy leave no minute for sends.
func (s *Service) noteSilences(p *capping.Policy) {
	silences := config.Silences(p, s.clock())
	s.silences.Store(&silences)
}

func (s *Service) reportReload(result string, err error) {
	cfg := s.watcher.Current()
	if err != nil {
		s.logger.Error("configuration rejected, the previous one stays in force", "error", err)
		server.AuditFile(s.logger, "reload", result, "version", cfg.Version, "error", err)
		return
	}
	s.logger.Info("configuration in force", "version", cfg.Version)
	server.AuditFile(s.logger, "reload", result, "version", cfg.Version)
	s.warn(cfg)
	s.warnUnmatched(s.segments.Current())
}

// The method warn logs settings of a configuration that are valid but probably unintended.
func (s *Service) warn(cfg *config.Config) {
	for _, warning := range slices.Concat(cfg.Warnings, *s.silences.Load()) {
		s.logger.Warn("configuration", "warning", warning)
	}
}

// An announcer is a store that remembers the policies in force. Before an instance applies a policy, the instance calls
// Announce. If several instances share the store, Announce tells the other instances about the policy. If Announce
// returns an error, the instance must not apply the policy.
type announcer interface {
	Announce(ctx context.Context, p *capping.Policy) error
}

// announce() tells the store the policy that the service is about to use. A Redis store publishes the policy to the
// other instances that share the store. Every store compares the numeric ids of channels with the ids in stored sends.
func (s *Service) announce(ctx context.Context, p *capping.Policy) error {
	shared, ok := capping.As[announcer](s.store)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return shared.Announce(ctx, p)
}
