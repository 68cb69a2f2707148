package s3sink_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/weir-go/weir/lease"
)

// cutStore is a store that cannot be reached while cut is true.
type cutStore struct {
	lease.Store
	cut atomic.Bool
}

func (s *cutStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.cut.Load() {
		return lease.Orders{}, errors.New("out of reach")
	}
	return s.Store.Heartbeat(ctx, app, r)
}
