package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// Each method in this file causes one fault, ends the fault, and records what it did. It ends the
// fault even if the context ends in the meantime.

// until sets the time at which everything must be well again.
func until(f *verdict.Fault, from int64, bound time.Duration) { f.Until = from + int64(bound) }

// kill kills n processes. If leader is true, the first of them is the leader. Otherwise the leader
// survives if n is more than 1.
func (s *stage) kill(r round, n int, leader bool) error {
	victims := s.victims(r, n, leader)
	if n > 1 && !leader {
		lead := s.leader()
		victims = slices.DeleteFunc(s.victims(r, n+1, false), func(l *life) bool { return l.name == lead })
		victims = victims[:min(n, len(victims))]
	}
	if len(victims) == 0 {
		return nil // there is only one worker, or only the leader
	}
	f := s.begin(r, verdict.Fault{Lives: names(victims), Repeats: true}, "")
	var errs []error
	for _, v := range victims {
		errs = append(errs, v.kill())
	}
	until(f, f.From, s.times.takenOver())
	waiting := s.pause(r.between(s.times.failover, 0, 1.6))
	for _, v := range victims {
		errs = append(errs, s.restart(v))
	}
	return errors.Join(append(errs, waiting)...)
}

func (s *stage) killAll(r round) error {
	victims := s.living()
	f := s.begin(r, verdict.Fault{Lives: names(victims), Repeats: true}, "")
	var errs []error
	for _, v := range victims {
		errs = append(errs, v.kill())
	}
	waiting := s.pause(r.between(s.times.failover, 0, 0.5))
	for _, v := range victims {
		errs = append(errs, s.restart(v))
	}
	f.To = now()
	until(f, f.To, starting+s.times.takenOver())
	return errors.Join(append(errs, waiting)...)
}

// freeze suspends a process for a while. If the process was writing to a file, it keeps the file
// locked, and no worker can use the store.
func (s *stage) freeze(f *verdict.Fault, l *life, d time.Duration, meanwhile func() error) error {
	held := false
	err := l.signal(syscall.SIGSTOP)
	if err == nil {
		held, err = s.backing.held()
	}
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	err = errors.Join(err, s.pause(time.Duration(f.From+int64(d)-now())))
	f.To = now() // before the process resumes
	if held {
		s.say("%s keeps the store's file locked", l.name)
		until(s.part(f, verdict.Fault{Repeats: true}), f.To, s.times.takenOver())
	}
	return errors.Join(err, l.signal(syscall.SIGCONT))
}

func (s *stage) freezeShort(r round) error {
	v := s.victims(r, 1, false)[0]
	d := r.between(s.times.failover, 0.1, 0.4)
	f := s.begin(r, verdict.Fault{Lives: []string{v.name}, Froze: true}, "for %v", d.Round(10*time.Millisecond))
	err := s.freeze(f, v, d, nil)
	until(f, f.To, s.times.moved())
	return err
}

func (s *stage) freezeLong(r round, leader bool) error {
	v := s.victims(r, 1, leader)[0]
	d := r.between(s.times.failover, 1.3, 3)
	f := s.begin(r, verdict.Fault{Lives: []string{v.name}, Froze: true, Repeats: true}, "for %v", d.Round(10*time.Millisecond))
	until(f, f.From, s.times.fromFrozen(s.pushed(nil)))
	return s.freeze(f, v, d, nil)
}

func (s *stage) stopAndRestart(r round) error {
	v := s.victims(r, 1, false)[0]
	f := s.begin(r, verdict.Fault{Lives: []string{v.name}}, "")
	err := errors.Join(v.stop(), v.wait(stopWithin))
	f.To = now()
	until(f, f.To, s.times.moved())
	err = errors.Join(err, s.pause(r.between(s.times.failover, 0, 0.6)))
	return errors.Join(err, s.restart(v))
}

// freezeDuringHandOff freezes a worker while another worker stops. The frozen worker may be
// receiving the leases of the worker that stops.
func (s *stage) freezeDuringHandOff(r round) error {
	victims := s.victims(r, 2, false)
	frozen, leaving := victims[0], victims[1%len(victims)]
	if frozen == leaving {
		return nil // there is only one worker
	}
	d := r.between(s.times.failover, 1.3, 2.5)
	f := s.begin(r, verdict.Fault{Lives: []string{frozen.name}, Froze: true, Repeats: true}, "%s stops, and %s is frozen for %v", leaving.name, frozen.name, d.Round(10*time.Millisecond))
	g := s.part(f, verdict.Fault{Lives: []string{leaving.name}})
	if err := errors.Join(leaving.stop(), s.pause(time.Duration(r.late*float64(2*s.times.beat)))); err != nil {
		return err
	}
	f.From = now()
	bound := s.times.fromFrozen(s.pushed(nil))
	until(f, f.From, bound)
	// A handoff from the worker that stops to the frozen worker waits until the freeze ends.
	until(g, f.From, bound+s.times.moved())
	err := s.freeze(f, frozen, d, nil)
	err = errors.Join(err, leaving.wait(stopWithin))
	g.To = now()
	return errors.Join(err, s.restart(leaving))
}

// cutOff makes the network of some proxies fail for a while.
func (s *stage) cutOff(f *verdict.Fault, mode cut.Mode, d time.Duration, proxies []*cut.Proxy, meanwhile func() error) error {
	var errs []error
	for _, p := range proxies {
		errs = append(errs, p.Set(mode))
	}
	err := errors.Join(errs...)
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	if mode != cut.HalfOpen {
		err = errors.Join(err, s.pause(time.Duration(f.From+int64(d)-now())))
		for _, p := range proxies {
			err = errors.Join(err, p.Set(cut.Pass))
		}
	}
	f.To = now()
	return err
}

// struck returns the proxies and processes of one worker, or the proxies of all workers and nil.
func (s *stage) struck(r round, all bool, of func(*slot) *cut.Proxy) (proxies []*cut.Proxy, lives []string) {
	if !all {
		v := s.victims(r, 1, false)[0]
		return []*cut.Proxy{of(s.slot(v))}, []string{v.name}
	}
	for _, w := range s.slots {
		proxies = append(proxies, of(w))
	}
	return proxies, nil
}

func (s *stage) cutStore(r round, all bool) error {
	proxies, lives := s.struck(r, all, func(w *slot) *cut.Proxy { return w.store })
	d, mode := r.between(s.times.failover, 0.3, 2.3), cut.Mode(r.mode)
	f := s.begin(r, verdict.Fault{Lives: lives, Repeats: mode != cut.Delay}, "%s", lasting(mode, d))
	until(f, f.From, s.times.takenOver())
	err := s.cutOff(f, mode, d, proxies, nil)
	switch {
	case mode == cut.Delay:
		until(f, f.To, s.times.moved())
	case all:
		until(f, f.To, s.times.takenOver())
	}
	return err
}

func lasting(mode cut.Mode, d time.Duration) string {
	if mode == cut.HalfOpen {
		return string(mode)
	}
	return fmt.Sprintf("%s for %v", mode, d.Round(10*time.Millisecond))
}

func (s *stage) cutKinesis(r round, all bool) error {
	proxies, lives := s.struck(r, all, func(w *slot) *cut.Proxy { return w.kinesis })
	d, mode := r.between(time.Second, 1, 9), cut.Mode(r.mode)
	f := s.begin(r, verdict.Fault{Lives: lives}, "%s", lasting(mode, d))
	err := s.cutOff(f, mode, d, proxies, nil)
	switch mode {
	case cut.HalfOpen:
		until(f, f.From, s.times.kinesisDead(s.pushed(lives)))
	case cut.Delay:
		until(f, f.To, s.times.moved())
	default:
		until(f, f.To, s.times.kinesisBack())
	}
	return err
}

func (s *stage) failKinesis(r round) error {
	d := r.between(time.Second, 1, 9)
	f := s.begin(r, verdict.Fault{}, "%s for %v", r.mode, d.Round(10*time.Millisecond))
	s.kinesis.fail(r.mode, 0.3+0.7*r.late)
	err := s.pause(d)
	s.kinesis.fail("", 0)
	f.To = now()
	until(f, f.To, s.times.kinesisBack())
	return err
}

// endSubscriptions ends the subscriptions of some of the shards.
func (s *stage) endSubscriptions(r round) error {
	shards := s.subscribedTo(r.mode)
	if len(shards) == 0 {
		return nil // these shards are polled now
	}
	f := s.begin(r, verdict.Fault{Shards: shards}, "%s, of %d shards", r.mode, len(shards))
	s.kinesis.end(r.mode)
	until(f, f.From, s.times.subscribedAgain())
	if r.mode == silence {
		until(f, f.From, s.times.silent())
	}
	return nil
}

func (s *stage) killStore(r round) error {
	d := r.between(s.times.failover, 0, 2)
	f := s.begin(r, verdict.Fault{Repeats: true}, "for %v and its start", d.Round(10*time.Millisecond))
	s.backing.kill()
	err := s.pause(d)
	err = errors.Join(err, s.backing.start())
	for _, w := range s.slots {
		w.store.Target(s.backing.address())
	}
	f.To = now()
	until(f, f.To, s.times.takenOver())
	return err
}

// outage makes the store unavailable for all workers for a while. For a server it uses the network,
// and for a file a lock.
func (s *stage) outage(f *verdict.Fault, r round, d time.Duration, meanwhile func() error) error {
	if s.backing.address() == "" {
		return s.lock(f, d, meanwhile)
	}
	proxies, _ := s.struck(r, true, func(w *slot) *cut.Proxy { return w.store })
	return s.cutOff(f, cut.Mode(r.mode), d, proxies, meanwhile)
}

// how describes an outage.
func (s *stage) how(r round) string {
	if s.backing.address() == "" {
		return "lock"
	}
	return r.mode
}

func (s *stage) lock(f *verdict.Fault, d time.Duration, meanwhile func() error) error {
	unlock, err := s.backing.lock()
	if err != nil {
		return err
	}
	if meanwhile != nil {
		err = meanwhile()
	}
	err = errors.Join(err, s.pause(time.Duration(f.From+int64(d)-now())), unlock())
	f.To = now()
	return err
}

func (s *stage) lockStore(r round) error {
	d := r.between(s.times.failover, 0.3, 2.3)
	f := s.begin(r, verdict.Fault{Repeats: true}, "for %v", d.Round(10*time.Millisecond))
	err := s.lock(f, d, nil)
	until(f, f.To, s.times.takenOver())
	return err
}

func (s *stage) fillStore(r round) error {
	if why := s.backing.endless(); why != nil {
		s.skip(r.kind.name, why)
		return nil
	}
	d := r.between(s.times.failover, 0.3, 2.3)
	f := s.begin(r, verdict.Fault{Repeats: true}, "for %v", d.Round(10*time.Millisecond))
	err := s.backing.fill()
	err = errors.Join(err, s.pause(d), s.backing.free())
	f.To = now()
	until(f, f.To, s.times.takenOver())
	return err
}

func (s *stage) killDuringOutage(r round) error {
	v := s.victims(r, 1, r.late < 0.5)[0]
	d := r.between(s.times.failover, 0.5, 2)
	f := s.begin(r, verdict.Fault{Repeats: true}, "%s for %v, and %s is killed", s.how(r), d.Round(10*time.Millisecond), v.name)
	err := s.outage(f, r, d, func() error {
		return errors.Join(s.pause(time.Duration(r.late*float64(d))), v.kill())
	})
	until(f, f.To, s.times.takenOver())
	return errors.Join(err, s.restart(v))
}

func (s *stage) stopDuringOutage(r round) error {
	v := s.victims(r, 1, false)[0]
	d := r.between(s.times.failover, 0.5, 2)
	f := s.begin(r, verdict.Fault{Repeats: true}, "%s for %v, and %s stops", s.how(r), d.Round(10*time.Millisecond), v.name)
	err := s.outage(f, r, d, func() error {
		return errors.Join(s.pause(time.Duration(r.late*float64(d))), v.stop())
	})
	// The worker may have failed to leave the store. So it counts as killed at the end of its
	// process, which comes at the latest when its stop times out.
	err = errors.Join(err, v.wait(stopWithin))
	until(f, max(f.To, now()), s.times.takenOver())
	return errors.Join(err, s.restart(v))
}

func (s *stage) reshard(r round) error {
	f := s.begin(r, verdict.Fault{}, "%s", s.splitOrMerge(r.mode, r.pick))
	until(f, f.From, s.times.children())
	return nil
}

// splitFrozen splits a shard whose owner is frozen and cannot finish it.
func (s *stage) splitFrozen(r round) error {
	v := s.victims(r, 1, false)[0]
	shard := s.shardOf(v)
	if shard == "" {
		return nil // it has no open shard
	}
	d := r.between(s.times.failover, 1.3, 2.5)
	f := s.begin(r, verdict.Fault{Lives: []string{v.name}, Froze: true, Repeats: true}, "%s, for %v", shard, d.Round(10*time.Millisecond))
	until(f, f.From, s.times.fromFrozen(s.pushed(nil))+s.times.children())
	return s.freeze(f, v, d, func() error {
		s.server.Split(stream, shard)
		return nil
	})
}

// pause waits for d, or until the run is over.
func (s *stage) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
