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

// reloadInterval is how often the configuration file is looked at.
const reloadInterval = time.Second

func newReloads() *prometheus.CounterVec {
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_config_reloads_total",
		Help: "Reloads of the configuration file after a change, by result.",
	}, []string{"result"})
	reloads.WithLabelValues("accepted")
	reloads.WithLabelValues("refused")
	return reloads
}

// refusedConfig shows whether the file is not what is in force.
func (s *Service) refusedConfig() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_config_refused",
		Help: "1 while the latest configuration file is rejected and the previous configuration stays in force.",
	}, func() float64 {
		if s.watcher.Status().Error != "" {
			return 1
		}
		return 0
	})
}

// watchConfig puts every good change of the configuration file in force, until
// ctx ends.
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

// answerReload tells who asked for a reload what the configuration is, where reportReload
// has not.
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
	s.tell(reloading, ready)
}

// tell tells the service manager, if there is one, how the service does.
func (s *Service) tell(states ...string) {
	for _, state := range states {
		if err := notify(s.manager, state); err != nil {
			s.logger.Warn("systemd could not be notified", "state", state, "error", err)
		}
	}
}

// reload puts a configuration in force whole, or refuses it and leaves the one
// before.
func (s *Service) reload(cfg *config.Config) error {
	if err := lacks(cfg.Policy, s.capper.Policy(), s.segments.Current()); err != nil {
		return err // before others are told of it, as it is tried again and again
	}
	if err := s.lostZones(cfg.Policy, s.capper.Policy()); err != nil {
		return err
	}
	if err := s.announce(context.Background(), cfg.Policy); err != nil {
		return err
	}
	if err := s.take(cfg); err != nil {
		_ = s.announce(context.Background(), s.capper.Policy()) // as before; that was accepted once
		return err
	}
	return nil
}

// take puts a configuration in force that others have been told of.
func (s *Service) take(cfg *config.Config) error {
	inForce := s.capper.Policy()
	if err := lacks(cfg.Policy, inForce, s.segments.Current()); err != nil {
		return err // a generation came into use since
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
	s.journal.SetPolicy(context.Background(), cfg.Policy.Version, cfg.PolicyText) // before a record names it
	s.pacers.SetPolicy(cfg.Pacers)
	s.audiences.take(cfg) // before a call takes the policy
	s.capper.SetPolicy(cfg.Policy)
	s.noteSilences(cfg.Policy)
	return nil
}

// noteSilences works out which days quiet hours leave no minute of.
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

// warn logs what a configuration allows and hardly means.
func (s *Service) warn(cfg *config.Config) {
	for _, warning := range slices.Concat(cfg.Warnings, *s.silences.Load()) {
		s.logger.Warn("configuration", "warning", warning)
	}
}

// announcer is a store that other instances share: they are told of a policy
// before it is put in force. An error is why it must not be.
type announcer interface {
	Announce(ctx context.Context, p *capping.Policy) error
}

// announce tells the instances that share the store of the policy.
func (s *Service) announce(ctx context.Context, p *capping.Policy) error {
	shared, ok := capping.As[announcer](s.store)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return shared.Announce(ctx, p)
}
