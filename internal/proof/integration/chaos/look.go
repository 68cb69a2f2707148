package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
)

// view reads the state of the store directly.
func (s *stage) view() (lease.View, error) {
	store, closer, err := servers.OpenStore(s.Store, s.backing.place(""))
	if err != nil {
		return lease.View{}, err
	}
	defer closer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return store.View(ctx, app, "")
}

// leader returns the name of the process that leads. It returns "" if that is unknown.
func (s *stage) leader() string {
	v, err := s.view()
	if err != nil {
		return ""
	}
	for _, w := range v.Workers {
		if w.Session == v.Leader.Session {
			return w.Name
		}
	}
	return ""
}

// shardOf returns an open shard of a process. It returns "" if the process has no open shard, or if
// the stream has too many open shards already.
func (s *stage) shardOf(l *life) string {
	v, err := s.view()
	open := s.server.OpenShards(stream)
	if err != nil || len(open) >= 3*s.Shards {
		return ""
	}
	for _, w := range v.Workers {
		for _, held := range v.Leases {
			if w.Name == l.name && held.Owner == w.Session && slices.Contains(open, held.Shard) {
				return held.Shard
			}
		}
	}
	return ""
}

// untilAllIsHeld waits until all workers have joined and every lease has an owner.
func (s *stage) untilAllIsHeld() error {
	bound := time.Now().Add(readyWithin)
	for {
		v, err := s.view()
		if err == nil && len(v.Workers) == s.Workers && len(v.Leases) == s.Shards &&
			!slices.ContainsFunc(v.Leases, func(l lease.Lease) bool { return l.Owner == "" }) {
			return nil
		}
		if err := s.allAlive(); err != nil {
			return err
		}
		if time.Now().After(bound) {
			return fmt.Errorf("the workers are not ready after %v: %d workers, %d leases (%w)", readyWithin, len(v.Workers), len(v.Leases), err)
		}
		if err := s.pause(200 * time.Millisecond); err != nil {
			return err
		}
	}
}
