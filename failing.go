package weir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// What a worker says with its beats of handlers that fail and of records that it gave up. Nothing
// of it is made while nothing fails.

// lately is for how long after the last of them a worker says that it gave records up.
const lately = time.Hour

// gaveUp is what is told of the records of a shard that were given up.
type gaveUp struct {
	records     int
	first, last time.Time
	at, why     string // of the last
}

// noteGivenUp notes that records of a shard were given up, the last of them at a position.
func (g *givingUp) noteGivenUp(key lease.Key, records int, at, why string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gaveUp == nil {
		g.gaveUp = map[lease.Key]gaveUp{}
	}
	of, some := g.gaveUp[key]
	if !some {
		of.first = now
	}
	of.records, of.last, of.at, of.why = of.records+records, now, at, why
	g.gaveUp[key] = of
}

// tell completes troubles by what was given up lately: in the trouble that a shard has, or in one
// of its own, behind what is wrong now.
func (g *givingUp) tell(troubles []lease.Trouble, now time.Time) []lease.Trouble {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(troubles)
	for key, of := range g.gaveUp {
		if now.Sub(of.last) >= lately {
			delete(g.gaveUp, key)
			continue
		}
		if i := slices.IndexFunc(troubles[:n], func(t lease.Trouble) bool { return t.Key == key }); i >= 0 {
			troubles[i].Failing.GivenUp = of.records
			continue
		}
		troubles = append(troubles, lease.Trouble{
			Key: key, State: lease.GaveUp, For: now.Sub(of.first).Truncate(time.Second), Why: of.why,
			Failing: lease.Failing{At: of.at, GivenUp: of.records},
		})
	}
	slices.SortFunc(troubles[n:], func(a, b lease.Trouble) int {
		return cmp.Or(cmp.Compare(b.Failing.GivenUp, a.Failing.GivenUp), a.Key.Compare(b.Key))
	})
	return troubles
}

// failsHere notes at what the handler fails, for those who look at the shard. letters says that the
// letters of records that are given up cannot be put. It is called when the shard has entered the
// state that follows.
func (l *shardLoop) failsHere(d *delivery, letters bool) {
	at := d.failsAt()
	if at.Letters = letters; letters {
		at.Held = ""
	}
	if b := d.parallel; b != nil {
		b.of.fails(b, at)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		l.failure.at = at
	}
}

// failsAt is the record that the handler fails at, or the first of those.
func (d *delivery) failsAt() lease.Failing {
	f := lease.Failing{Attempts: d.attempt}
	switch d.waits {
	case waitForOthers:
		f.Held = lease.HeldPatience
	case waitForRoom:
		f.Held = lease.HeldRate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.limit() - d.done
	if n <= 0 { // the handler fails at the shard's end
		return f
	}
	if f.Records = n; d.alone > 0 {
		f.Records = 1
	}
	r := &d.kept.records[d.done]
	f.At = positionAfter(r.SequenceNumber, r.Done).String()
	if r.Key != "" {
		hash := sha256.Sum256([]byte(r.Key))
		f.KeyHash = hex.EncodeToString(hash[:4])
	}
	return f
}
