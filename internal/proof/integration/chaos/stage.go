package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

const (
	stopWithin  = 40 * time.Second // a worker leaves much sooner than that
	readyWithin = time.Minute
	// calm is the time between the time limit of a fault and the next fault. If a shard is silent
	// in this time, no fault excuses the silence.
	calm = time.Second
	// subscriptionLife is shorter than the service's five minutes. So renewals happen during
	// faults, and faults hit subscriptions that are too young for a takeover.
	subscriptionLife = 25 * time.Second
)

// stage is a running application with faults. It belongs to one goroutine.
type stage struct {
	settings
	ctx        context.Context // context of the faults
	dir        string
	log        io.Writer // log for the user
	times      times
	backing    backing
	server     *kinesistest.Server
	kinesis    *unwell
	prometheus *prometheus // nil without -watched
	slots      []*slot
	lives      []*life // all processes so far
	started    time.Time
	faults     []*verdict.Fault
	logged     int // number of faults already written
	skipped    map[string]bool
	wrong      []string

	bucket             *bucket // with -sink s3sink
	effects            int     // rows or lines, with -sink
	subscribed, polled int     // final numbers of SubscribeToShard and GetRecords calls
}

// caFile returns the path of the certificate of the Kinesis server.
func (s *stage) caFile() string { return filepath.Join(s.dir, "ca.pem") }

// play runs the application, causes the faults, and stops the application. It adds the problems
// that it finds in the application to wrong, and returns only errors of this program.
func (s *stage) play(t testing.TB) (puts int64, late time.Duration, err error) {
	if s.backing, err = newBacking(t, s.Store, s.dir); err != nil {
		return 0, 0, err
	}
	if err := servers.PrepareStore(s.ctx, s.Store, s.backing.place("")); err != nil {
		return 0, 0, err
	}
	if err := s.prepareSink(t); err != nil {
		return 0, 0, err
	}
	if s.server, err = kinesistest.Start(kinesistest.Config{NoLimits: true, TLS: true, SubscriptionLife: subscriptionLife}); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.server.Close()) }()
	s.kinesis = newUnwell()
	s.server.Control("", s.kinesis.call)
	if err := os.WriteFile(s.caFile(), s.server.CACertPEM(), 0o600); err != nil {
		return 0, 0, err
	}
	s.server.CreateStream(stream, s.Shards)
	if err := s.watch(t); err != nil {
		return 0, 0, err
	}
	defer s.killEverything()
	for i := range s.Workers {
		if err := s.hire(i + 1); err != nil {
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

// inflict plays the script until its time is over.
func (s *stage) inflict() error {
	script, err := newScript(s.settings)
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

// begin records and prints a fault that is about to begin.
func (s *stage) begin(r round, f verdict.Fault, format string, args ...any) *verdict.Fault {
	f.Kind, f.From = r.kind.name, now()
	f.To = f.From
	until(&f, f.From, s.times.takenOver())
	s.faults = append(s.faults, &f)
	s.say("%s %s %s", f.Kind, strings.Join(f.Lives, " and "), fmt.Sprintf(format, args...))
	return &f
}

// part records a fault that is part of another fault.
func (s *stage) part(of *verdict.Fault, f verdict.Fault) *verdict.Fault {
	f.Kind, f.From, f.To, f.Until, f.Part = of.Kind, of.From, of.To, of.Until, true
	s.faults = append(s.faults, &f)
	return &f
}

func (s *stage) say(format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	fmt.Fprintf(s.log, "%s %6.1fs  %s\n", s.Store, time.Since(s.started).Seconds(), line)
}

// skip reports that a fault is not possible. It reports each fault only once.
func (s *stage) skip(what string, why error) {
	if !s.skipped[what] {
		s.skipped[what] = true
		s.say("%s: left out: %v", what, why)
	}
}

// blame records a broken promise that the verdict cannot detect.
func (s *stage) blame(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	s.say("%s", s.wrong[len(s.wrong)-1])
}

// writeFaults appends the new faults to the file of faults.
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
