package app

import (
	"context"

	"capper/internal/capping"
)

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
