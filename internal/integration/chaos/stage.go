package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/integration/chaos/cut"
	"github.com/weir-go/weir/internal/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

const (
	stopWithin  = 40 * time.Second // a worker's farewell is over long before
	readyWithin = time.Minute
	// calm is between two faults, beyond the bound of the first one: a shard that is still silent then has no excuse.
	calm = time.Second
)

// stage is a running application that things happen to. It belongs to one goroutine.
type stage struct {
	settings
	ctx     context.Context // of the faults
	dir     string
	log     io.Writer // for people
	times   times
	backing backing
	server  *kinesistest.Server
	slots   []*slot
	lives   []*life // all that there ever were
	started time.Time
	faults  []*verdict.Fault
	logged  int // faults that are in the log
	skipped map[string]bool
	wrong   []string
}

// slot is a worker, whatever its process is at the moment, and its connections.
type slot struct {
	name           string
	n              int // of its lives
	life           *life
	store, kinesis *cut.Proxy // store is nil where that is a file
}

// play runs the application, its faults, and its end. Problems that are no error of this program are in wrong.
func (s *stage) play(t testing.TB) (puts int64, late time.Duration, err error) {
	if s.backing, err = newBacking(t, s.Store, s.dir); err != nil {
		return 0, 0, err
	}
	if err := servers.PrepareStore(s.ctx, s.Store, s.backing.place("")); err != nil {
		return 0, 0, err
	}
	if s.server, err = kinesistest.Start(kinesistest.Config{NoLimits: true}); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.server.Close()) }()
	s.server.CreateStream(stream, s.Shards)
	defer s.killEverything()
	for i := range s.Workers {
		if err := s.hire(fmt.Sprintf("w%d", i+1)); err != nil {
			return 0, 0, err
		}
	}
	if err := s.untilAllIsHeld(); err != nil {
		return 0, 0, err
	}

	p := &producer{server: s.server, path: filepath.Join(s.dir, putsFile), rate: s.Rate}
	putting, enough := context.WithCancel(context.Background())
	var failed error
	var done sync.WaitGroup
	done.Go(func() { failed = p.run(putting) })
	err = s.inflict()
	if errors.Is(err, context.Canceled) {
		s.say("interrupted; ending in order")
		err = nil
	}
	enough()
	done.Wait()
	if err = errors.Join(err, failed, s.writeFaults()); err != nil {
		return p.put.Load(), 0, err
	}
	return p.put.Load(), time.Duration(p.late.Load()), s.finish(p.put.Load())
}

// hire makes a worker with its connections and starts its first process.
func (s *stage) hire(name string) (err error) {
	w := &slot{name: name}
	s.slots = append(s.slots, w)
	if w.kinesis, err = cut.New(strings.TrimPrefix(s.server.URL(), "http://")); err != nil {
		return err
	}
	if to := s.backing.address(); to != "" {
		if w.store, err = cut.New(to); err != nil {
			return err
		}
	}
	return s.start(w)
}

// start gives a worker its next process.
func (s *stage) start(w *slot) (err error) {
	w.n++
	told := worker{Life: fmt.Sprintf("%s.%d", w.name, w.n), Kinesis: "http://" + w.kinesis.Addr(), Kind: s.Store, Beat: s.Beat, Failover: s.Failover}
	if w.store != nil {
		told.Place = s.backing.place(w.store.Addr())
	} else {
		told.Place = s.backing.place("")
	}
	told.Journal = filepath.Join(s.dir, told.Life+journalSuffix)
	if w.life, err = startLife(told, s.dir); err == nil {
		s.lives = append(s.lives, w.life)
	}
	return err
}

// restart starts the worker again whose process this was.
func (s *stage) restart(l *life) error { return s.start(s.slot(l)) }

func (s *stage) slot(l *life) *slot {
	i := slices.IndexFunc(s.slots, func(w *slot) bool { return w.life == l })
	return s.slots[i]
}

// killEverything leaves nothing behind, whatever happened.
func (s *stage) killEverything() {
	for _, l := range s.lives {
		if l.alive() {
			_ = l.kill()
		}
	}
	for _, w := range s.slots {
		if w.kinesis != nil {
			w.kinesis.Close()
		}
		if w.store != nil {
			w.store.Close()
		}
	}
}

// inflict plays the script until its time is over.
func (s *stage) inflict() error {
	script, err := newScript(s.Seed, s.Profile, s.Store)
	if err != nil {
		return err
	}
	s.started = time.Now()
	if err := s.pause(2 * calm); err != nil {
		return err
	}
	for time.Since(s.started) < s.For {
		before := len(s.faults)
		if err := script.next().play(s); err != nil {
			return err
		}
		if err := s.allAlive(); err != nil {
			return err
		}
		well := now()
		for _, f := range s.faults[before:] {
			well = max(well, f.Until+int64(s.Allowance))
		}
		if err := errors.Join(s.writeFaults(), s.pause(time.Duration(well-now())+calm)); err != nil {
			return err
		}
	}
	return nil
}

func (r round) play(s *stage) error {
	if err := r.kind.play(s, r); err != nil {
		return fmt.Errorf("%s: %w", r.kind.name, err)
	}
	return nil
}

// begin notes a fault that is about to be inflicted, and shows it.
func (s *stage) begin(r round, f verdict.Fault, format string, args ...any) *verdict.Fault {
	f.Kind, f.From = r.kind.name, now()
	f.To = f.From
	until(&f, f.From, s.times.takenOver())
	s.faults = append(s.faults, &f)
	s.say("%s %s %s", f.Kind, strings.Join(f.Lives, " and "), fmt.Sprintf(format, args...))
	return &f
}

// part notes a fault that comes with another one.
func (s *stage) part(of *verdict.Fault, f verdict.Fault) *verdict.Fault {
	f.Kind, f.From, f.To, f.Until, f.Part = of.Kind, of.From, of.To, of.Until, true
	s.faults = append(s.faults, &f)
	return &f
}

func (s *stage) say(format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	fmt.Fprintf(s.log, "%s %6.1fs  %s\n", s.Store, time.Since(s.started).Seconds(), line)
}

// skip says once that a fault cannot be had.
func (s *stage) skip(what string, why error) {
	if !s.skipped[what] {
		s.skipped[what] = true
		s.say("%s: left out: %v", what, why)
	}
}

// blame notes a broken promise that the verdict cannot see.
func (s *stage) blame(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	s.say("%s", s.wrong[len(s.wrong)-1])
}

func (s *stage) living() []*life {
	var all []*life
	for _, w := range s.slots {
		if w.life.alive() {
			all = append(all, w.life)
		}
	}
	return all
}

// allAlive fails when a worker has ended that nobody asked to.
func (s *stage) allAlive() error {
	for _, w := range s.slots {
		if !w.life.alive() && !w.life.asked.Load() {
			return fmt.Errorf("worker %s ended by itself (%w); it said last: %s", w.life.name, w.life.err, w.life.lastWords())
		}
	}
	return nil
}

// victims are some of the living.
func (s *stage) victims(r round, n int, leader bool) []*life {
	all := s.living()
	first := int(r.pick % uint64(len(all)))
	if leader {
		name := s.leader()
		if i := slices.IndexFunc(all, func(l *life) bool { return l.name == name }); i >= 0 {
			first = i
		}
	}
	var chosen []*life
	for i := range min(n, len(all)) {
		chosen = append(chosen, all[(first+i)%len(all)])
	}
	return chosen
}

func names(lives []*life) []string {
	var all []string
	for _, l := range lives {
		all = append(all, l.name)
	}
	return all
}

// view is what the store says, asked directly.
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

// leader is the name of the process that leads, "" if nobody knows.
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

// shardOf is an open shard that a process holds, "" if there is none or splitting has led to too many.
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

// untilAllIsHeld waits until every worker takes part and every shard is read.
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

// finish lets everything be handled, stops the workers, and looks at what is left.
func (s *stage) finish(puts int64) error {
	bound := s.times.takenOver() + s.Allowance
	s.say("no more faults, %d records; waiting for the last ones", puts)
	for deadline := time.Now().Add(bound); ; <-time.After(200 * time.Millisecond) {
		distinct, err := countDistinct(s.dir)
		if err != nil {
			return err
		}
		if distinct >= puts {
			break
		}
		if time.Now().After(deadline) {
			s.blame("%d records were not handled %v after the last fault and the last record", puts-distinct, bound)
			break
		}
	}
	if err := s.allAlive(); err != nil {
		return err
	}
	for _, l := range s.living() {
		if err := l.stop(); err != nil {
			return err
		}
	}
	for _, w := range s.slots {
		if err := w.life.wait(stopWithin); err != nil {
			s.blame("%v", err)
		}
	}
	for _, l := range s.lives {
		if err := syscall.Kill(-l.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			s.blame("a process of %s is left", l.name)
		}
	}
	v, err := s.view()
	if err != nil {
		return err
	}
	for _, l := range v.Leases {
		if l.Owner != "" {
			s.blame("the lease %s is held although every worker has stopped", l.Key)
		}
	}
	return nil
}

// writeFaults brings the log of faults up to date.
func (s *stage) writeFaults() error {
	f, err := os.OpenFile(filepath.Join(s.dir, faultsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for ; s.logged < len(s.faults) && err == nil; s.logged++ {
		err = appendFault(f, s.faults[s.logged])
	}
	return errors.Join(err, f.Close())
}
