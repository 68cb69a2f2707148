package weirtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/weir-go/weir"
)

// till is the handler under test: it charges orders. It sets aside an unreadable order after three
// attempts.
type till struct {
	mu      sync.Mutex
	charged []order
	aside   []string
}

type order struct {
	ID       string `json:"order"`
	Customer string `json:"customer"`
}

func (t *till) Handle(_ context.Context, b *weir.Batch) error {
	for i, r := range b.Records {
		if err := t.charge(r); err != nil {
			if i > 0 || b.Attempt < 3 { // Attempt counts for the first record
				return err
			}
			t.putAside(r)
		}
		if err := b.Done(r); err != nil { // a failure further on does not charge it again
			return err
		}
	}
	return nil
}

func (t *till) charge(r weir.Record) error {
	var o order
	if err := json.Unmarshal(r.Data, &o); err != nil {
		return fmt.Errorf("%s is no order: %w", r.ID(), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.charged = append(t.charged, o)
	return nil
}

func (t *till) putAside(r weir.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aside = append(t.aside, string(r.Data))
}

// orders returns the IDs of a customer's charged orders, or of all customers if customer is "", in
// the order in which they were charged.
func (t *till) orders(customer string) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.charged {
		if customer == "" || o.Customer == customer {
			ids = append(ids, o.ID)
		}
	}
	return ids
}
