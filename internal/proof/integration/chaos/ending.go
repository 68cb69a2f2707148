package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// finish waits until all records are handled, stops the workers, and checks the final state.
func (s *stage) finish(puts int64) error {
	bound := s.times.takenOver() + s.Allowance
	if s.Failing {
		// While no other record succeeds, a failing record is dead-lettered only after OutageGrace,
		// which is patience. The records after it wait too.
		bound += 2 * patience
	}
	s.say("no more faults, %d records; waiting for the last ones", puts)
	for deadline := time.Now().Add(bound); ; <-time.After(200 * time.Millisecond) {
		distinct, err := s.countDone()
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
	if err := s.collect(); err != nil {
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
	if s.Sink != "" {
		text, err := os.ReadFile(filepath.Join(s.dir, putsFile))
		if err != nil {
			return err
		}
		put, err := verdict.ParsePuts(text)
		if err != nil {
			return err
		}
		if err := s.judgeEffects(put); err != nil {
			return err
		}
	}
	var outdated int
	s.subscribed, outdated = s.kinesis.counted()
	s.polled = s.server.Requests("GetRecords")
	if outdated > 0 {
		s.blame("%d subscriptions were not over HTTP/2", outdated)
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
