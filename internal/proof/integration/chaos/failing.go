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

// With -failing, handlers fail in several ways. Records that always fail are dead-lettered.
const (
	lettersPrefix = "letters."
	awayFile      = "downstream-is-away"
	// poisonOne means that one in this many records always fails.
	poisonOne = 1500
	// luckOne means that one in this many records fails the first time that a process receives it.
	luckOne = 500
	// patience is longer than any outage of the downstream service.
	patience = 30 * time.Second
	attempts = 3
	// retryMax is the maximum backoff. It is short, so that a record is dead-lettered soon after
	// OutageGrace.
	retryMax = 5 * time.Second
)

var (
	errAway   = errors.New("the downstream is away")
	errPoison = errors.New("nobody can handle this record")
	errLuck   = errors.New("bad luck")
	errBatch  = errors.New("a record of the batch failed")
)

// hash returns a value for a record that is the same in every process.
func hash(key string, number int, salt int64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, key, " ", number, " ", salt)
	return h.Sum64()
}

// poison reports whether a record always fails.
func poison(p verdict.Put) bool { return hash(p.Key, p.Number, 0)%poisonOne == 0 }

// failingHandler is a handler that fails.
type failingHandler struct {
	*journal
	away string // file that exists during an outage of the downstream service
	luck int64  // selects the records that fail once in this process

	mu     sync.Mutex
	failed map[verdict.Put]bool
}

// once reports whether a record fails now. One in luckOne records fails the first time that this
// process receives it, and succeeds after that.
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

// Handle fails in one of two ways, depending on the shard and its epoch. In the first way, it fails
// at a record and names the record. In the second way, it handles no record of the batch and names
// no record.
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

// ended writes a failed call without effects to the journal.
func (f *failingHandler) ended(b *weir.Batch, start int64, err error) error {
	call := verdict.Call{Shard: b.Shard, Epoch: b.Epoch, Start: start, End: now(), Failed: err != nil}
	return f.note(func(line []byte) []byte { return verdict.AppendCall(line, call) })
}

// giveUp returns the policy. Its destination sometimes fails, either before it stores the dead
// letters or after it has stored them, like a lost answer.
func giveUp(j *journal, path, life string) weir.FailurePolicy {
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
	return weir.FailurePolicy{Destination: deadletter.Func(put), MaxAttempts: attempts, Bisect: true, OutageGrace: patience, MaxPerMinute: -1}
}

// takeDownstream makes every handler fail for a while.
func (s *stage) takeDownstream(r round) error {
	d := r.between(time.Second, 4, 12)
	f := s.begin(r, verdict.Fault{}, "for %v", d.Round(10*time.Millisecond))
	path := filepath.Join(s.dir, awayFile)
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = errors.Join(s.pause(d), os.Remove(path))
	}
	f.To = now()
	until(f, f.To, s.times.kinesisBack()) // longer than the longest backoff
	return err
}

// readLetters reads the dead letters of all processes.
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
