package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// event is a fault. It may be the reason why records are handled again.
type event struct {
	kind       string
	life       string // process that it concerns; empty for all
	began, end time.Time
}

// kinds are the faults, and how long they last at least and at most. SIGKILL and SIGTERM last for
// the pause until the next process starts.
var kinds = []struct {
	name      string
	low, high time.Duration
}{
	{"kill -9", 0, 3 * time.Second},
	{"SIGSTOP beyond the hold", hold + time.Second, 2 * hold},
	{"a short SIGSTOP", 100 * time.Millisecond, hold / 2},
	{"SIGTERM and restart", 0, time.Second},
	{lostReceives, 2 * time.Second, 8 * time.Second},
	{lostAcks, 2 * time.Second, 8 * time.Second},
	{throttles, 2 * time.Second, 8 * time.Second},
	{refused, hold + time.Second, 2 * hold},
}

// faults makes faults happen, one after the other in an order that the seed determines.
func (s *stage) faults(ctx context.Context, lasts time.Duration) error {
	until := time.Now().Add(lasts)
	var order []int
	for time.Now().Before(until) && ctx.Err() == nil {
		if len(order) == 0 {
			order = s.random.Perm(len(kinds))
		}
		k := kinds[order[0]]
		order = order[1:]
		w := s.workers[s.random.IntN(len(s.workers))]
		e := event{kind: k.name, life: w.name, began: time.Now()}
		pause := k.low + time.Duration(s.random.Int64N(int64(k.high-k.low)+1))
		fmt.Printf("%s: %s, %v\n", w.name, k.name, pause.Round(time.Millisecond))
		var err error
		switch k.name {
		case "kill -9":
			w.kill()
			time.Sleep(pause)
			err = s.start(w)
		case "SIGTERM and restart":
			if err = w.stop(); err == nil {
				time.Sleep(pause)
				err = s.start(w)
			}
		case "SIGSTOP beyond the hold", "a short SIGSTOP":
			err = w.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(pause)
			if e := w.cmd.Process.Signal(syscall.SIGCONT); err == nil {
				err = e
			}
		default:
			e.life = ""
			s.proxy.fail(k.name)
			time.Sleep(pause)
			s.proxy.fail("")
		}
		if err != nil {
			return fmt.Errorf("%s of %s: %w", k.name, w.name, err)
		}
		e.end = time.Now()
		s.mu.Lock()
		s.past = append(s.past, e)
		s.mu.Unlock()
		time.Sleep(time.Duration(1000+s.random.IntN(2000)) * time.Millisecond)
	}
	return nil
}
