package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/judge"
	"github.com/weir-go/weir/lease"
)

// watch collects the data that the demo can observe without asking the workers: the rows of the
// store, and the growing journals of the handlers. It belongs to the goroutine of Run.
type watch struct {
	dir   string
	store lease.Store

	view     lease.View
	journals map[string][]judge.Handling
	tails    map[string]*tail
	seen     []bool
	distinct int
	handled  map[string]int      // by worker
	shards   map[string]*counted // by shard
	last     time.Time
}

// tail is a journal that is being read. rest is the beginning of a line that is not complete yet.
type tail struct {
	file *os.File
	rest []byte
}

type counted struct {
	distinct, handled int
	before            int // value of handled when rate was last computed
	rate              float64
}

func newWatch(dir string, store lease.Store, flights int) *watch {
	return &watch{dir: dir, store: store, journals: map[string][]judge.Handling{}, tails: map[string]*tail{},
		seen: make([]bool, flights), handled: map[string]int{}, shards: map[string]*counted{}}
}

func (w *watch) close() {
	for _, t := range w.tails {
		_ = t.file.Close() // the file was only read
	}
}

// look reads the store and the journals. names contains all workers that were ever started.
func (w *watch) look(ctx context.Context, names []string) error {
	view, err := w.store.View(ctx, app, w.view.Revision)
	if err != nil {
		return err
	}
	if view.Same {
		view.Leases = w.view.Leases
	}
	w.view = view
	for _, name := range names {
		if err := w.readJournal(name); err != nil {
			return err
		}
	}
	now := time.Now()
	if passed := now.Sub(w.last); passed >= 200*time.Millisecond {
		for _, c := range w.shards {
			c.rate = smooth(c.rate, float64(c.handled-c.before)/passed.Seconds(), passed)
			c.before = c.handled
		}
		w.last = now
	}
	return nil
}

// smooth averages a rate over about two seconds, because each answer of GetRecords contains the
// records of about one second.
func smooth(rate, sample float64, passed time.Duration) float64 {
	keep := math.Exp(-passed.Seconds() / 2)
	return keep*rate + (1-keep)*sample
}

func (w *watch) readJournal(name string) error {
	t := w.tails[name]
	if t == nil {
		f, err := os.Open(journalPath(w.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the worker has not created its journal yet
		}
		if err != nil {
			return err
		}
		t = &tail{file: f}
		w.tails[name] = t
	}
	fresh, err := io.ReadAll(t.file)
	if err != nil {
		return err
	}
	handled, rest, err := judge.ParseLines(append(t.rest, fresh...))
	if err != nil {
		return fmt.Errorf("worker %s: %w", name, err)
	}
	t.rest = slices.Clone(rest)
	w.journals[name] = append(w.journals[name], handled...)
	w.handled[name] += len(handled)
	for _, h := range handled {
		c := w.shards[h.Shard]
		if c == nil {
			c = &counted{}
			w.shards[h.Shard] = c
		}
		c.handled++
		// A repeated record counts only once here. The function judge.Judge reports a record with
		// an invalid index.
		if h.Index >= 0 && h.Index < len(w.seen) && !w.seen[h.Index] {
			w.seen[h.Index] = true
			w.distinct++
			c.distinct++
		}
	}
	return nil
}

// picture combines the last read of the store and the journals with the number of records put and
// the processes.
func (w *watch) picture(put map[string]int, processes []*process) picture {
	p := picture{flights: len(w.seen), distinct: w.distinct}
	names := map[string]string{} // session → worker
	for _, row := range w.view.Workers {
		names[row.Session] = row.Name
	}
	parents := map[string]bool{}
	for _, l := range w.view.Leases {
		for _, id := range l.Parents {
			parents[id] = true
		}
	}
	held := map[string]int{}
	for _, l := range w.view.Leases {
		s := shardState{id: l.Shard, parents: l.Parents, hash: l.Range, epoch: l.Epoch, finished: l.Finished(),
			closed: parents[l.Shard], moving: l.Heir != "", put: put[l.Shard]}
		if l.Owner != "" {
			s.owner = cmp.Or(names[l.Owner], l.Owner)
		}
		held[s.owner]++
		if c := w.shards[l.Shard]; c != nil {
			s.distinct, s.rate = c.distinct, c.rate
		}
		p.shards = append(p.shards, s)
	}
	slices.SortFunc(p.shards, func(a, b shardState) int { return cmp.Compare(a.id, b.id) })
	leader := names[w.view.Leader.Session]
	for _, proc := range processes {
		state := workerState{name: proc.name, pid: proc.cmd.Process.Pid, life: proc.life(), handled: w.handled[proc.name],
			leases: held[proc.name], leads: proc.name == leader}
		if state.life == starting && slices.ContainsFunc(w.view.Workers, func(row lease.Worker) bool { return row.Name == proc.name }) {
			proc.become(living)
			state.life = living
		}
		p.workers = append(p.workers, state)
		p.handled += state.handled
	}
	for _, n := range put {
		p.put += n
	}
	return p
}
