package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
)

// slot is a worker with its connections. It stays the same when a new process runs the worker.
type slot struct {
	name    string
	reading weir.FanOutMode
	n       int // number of processes so far
	life    *life
	// Proxies; store is nil for a file, and bucket is nil if there is no bucket.
	store, kinesis, bucket *cut.Proxy
}

// hire creates a worker with its connections and starts its first process.
func (s *stage) hire(n int) (err error) {
	w := &slot{name: fmt.Sprintf("w%d", n), reading: readingOf(s.Reading, n)}
	s.slots = append(s.slots, w)
	if w.kinesis, err = cut.New(s.server.Addr()); err != nil {
		return err
	}
	if to := s.backing.address(); to != "" {
		if w.store, err = cut.New(to); err != nil {
			return err
		}
	}
	if s.bucket != nil {
		if w.bucket, err = cut.New(s.bucket.server.Addr); err != nil {
			return err
		}
	}
	return s.start(w)
}

// start starts the next process of a worker.
func (s *stage) start(w *slot) (err error) {
	w.n++
	told := worker{
		Life: fmt.Sprintf("%s.%d", w.name, w.n), Kinesis: "https://" + w.kinesis.Addr(), CA: s.caFile(), Kind: s.Store,
		Reading: w.reading, Beat: s.Beat, Failover: s.Failover, Sink: s.Sink, Failing: s.Failing,
	}
	if s.prometheus != nil {
		told.Metrics = s.prometheus.targets[slices.Index(s.slots, w)]
	}
	if w.store != nil {
		told.Place = s.backing.place(w.store.Addr())
	} else {
		told.Place = s.backing.place("")
	}
	if w.bucket != nil {
		told.Bucket = w.bucket.Addr()
	}
	told.Journal = filepath.Join(s.dir, told.Life+journalSuffix)
	if w.life, err = startLife(told, s.dir); err == nil {
		s.lives = append(s.lives, w.life)
	}
	return err
}

// restart starts a new process for the worker of an ended process.
func (s *stage) restart(l *life) error { return s.start(s.slot(l)) }

func (s *stage) slot(l *life) *slot {
	i := slices.IndexFunc(s.slots, func(w *slot) bool { return w.life == l })
	return s.slots[i]
}

// killEverything kills all processes, whatever their state.
func (s *stage) killEverything() {
	for _, l := range s.lives {
		if l.alive() {
			_ = l.kill()
		}
	}
	for _, w := range s.slots {
		for _, p := range []*cut.Proxy{w.kinesis, w.store, w.bucket} {
			if p != nil {
				p.Close()
			}
		}
	}
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

// allAlive returns an error if a worker has ended although the stage did not request this.
func (s *stage) allAlive() error {
	for _, w := range s.slots {
		if !w.life.alive() && !w.life.asked.Load() {
			return fmt.Errorf("worker %s ended by itself (%w); it said last: %s", w.life.name, w.life.err, w.life.lastWords())
		}
	}
	return nil
}

// victims selects n processes that are alive.
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
