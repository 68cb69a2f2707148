package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// With -failing handlers fail, in every way that a policy tells apart, and what they always fail at
// is given up.
const (
	lettersPrefix = "letters."
	awayFile      = "downstream-is-away"
	// poisonOne of so many records is failed at for ever.
	poisonOne = 1500
	// luckOne of so many records fails the first time that somebody gets to it.
	luckOne = 500
	// patience is longer than the downstream is ever away.
	patience = 30 * time.Second
	attempts = 3
	// retryMax bounds the pauses, so that what waits for patience is not waited for much longer.
	retryMax = 5 * time.Second
)

var (
	errAway   = errors.New("the downstream is away")
	errPoison = errors.New("nobody can handle this record")
	errLuck   = errors.New("bad luck")
	errBatch  = errors.New("a record of the batch failed")
)

// hash of a record is the same for everybody.
func hash(key string, number int, salt int64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, key, " ", number, " ", salt)
	return h.Sum64()
}

// poison reports whether a record is failed at for ever.
func poison(p verdict.Put) bool { return hash(p.Key, p.Number, 0)%poisonOne == 0 }

// failingHandler is a handler that fails.
type failingHandler struct {
	*journal
	away string // a file that is there while the downstream is away
	luck int64  // which records this process fails at once

	mu     sync.Mutex
	failed map[verdict.Put]bool
}

// once reports whether bad luck strikes: at a record, and never again.
func (f *failingHandler) once(p verdict.Put) bool {
	if hash(p.Key, p.Number, f.luck)%luckOne != 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = map[verdict.Put]bool{}
	}
	before := f.failed[p]
	f.failed[p] = true
	return !before
}

// Handle says at which record it failed, or does nothing and says that it failed, in turn by shard.
func (f *failingHandler) Handle(ctx context.Context, b *weir.Batch) error {
	if _, err := os.Stat(f.away); err == nil {
		start := now()
		return errors.Join(errAway, f.ended(b, start, errAway))
	}
	for i, r := range b.Records {
		p, err := parseRecord(r.PartitionKey, r.Data)
		if err != nil {
			return weir.Stop(err)
		}
		switch {
		case poison(verdict.Put{Key: p.Key, Number: p.Number}):
			err = errPoison
		case b.Attempt == 1 && f.once(verdict.Put{Key: p.Key, Number: p.Number}):
			err = errLuck
		default:
			continue
		}
		if hash(b.Shard, int(b.Epoch), 0)%2 == 0 {
			return errors.Join(errBatch, f.ended(b, now(), err))
		}
		part := *b
		part.Records = b.Records[:i]
		if other := f.journal.Handle(ctx, &part); other != nil {
			return other
		}
		return weir.FailedAt(r, err)
	}
	return f.journal.Handle(ctx, b)
}

// ended notes a call that did nothing.
func (f *failingHandler) ended(b *weir.Batch, start int64, err error) error {
	call := verdict.Call{Shard: b.Shard, Epoch: b.Epoch, Start: start, End: now(), Failed: err != nil}
	return f.note(func(line []byte) []byte { return verdict.AppendCall(line, call) })
}

// giveUp is the policy. Its destination fails now and then, before letters are there or, as a
// destination does whose answer is lost, after that.
func giveUp(j *journal, path, life string) weir.GiveUp {
	put := func(_ context.Context, letters []deadletter.Letter) error {
		var text []byte
		confirmed := rand.IntN(4) != 0
		for _, l := range letters {
			p, err := parseRecord(l.PartitionKey, l.Data)
			if err != nil {
				return err
			}
			text = verdict.AppendLetter(text, verdict.Letter{Put: p, ID: l.ID, Life: life, Shard: l.Shard, Epoch: l.Epoch, At: now(), Confirmed: confirmed})
		}
		if rand.IntN(3) == 0 {
			return errors.New("the destination is away")
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		if err = errors.Join(err, file.Close()); err == nil && !confirmed {
			err = errors.New("the destination's answer is lost")
		}
		return err
	}
	return weir.GiveUp{To: deadletter.Func(put), Attempts: attempts, Bisect: true, Patience: patience, PerMinute: -1}
}

// takeDownstream has every handler fail at everything for a while.
func (s *stage) takeDownstream(r round) error {
	d := r.between(time.Second, 4, 12)
	f := s.begin(r, verdict.Fault{}, "for %v", d.Round(10*time.Millisecond))
	path := filepath.Join(s.dir, awayFile)
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = errors.Join(s.pause(d), os.Remove(path))
	}
	f.To = now()
	until(f, f.To, s.times.kinesisBack()) // the longest pause between two tries is as long
	return err
}

// readLetters reads all that were put, by whomever.
func readLetters(dir string) (all []verdict.Letter, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, lettersPrefix+"*"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		letters, err := verdict.ParseLetters(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(path, dir), err)
		}
		all = append(all, letters...)
	}
	return all, err
}
