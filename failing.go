package weir

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/lease"
)

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
	f := lease.Failing{Attempts: d.Attempts}
	switch d.Held {
	case failure.WaitForOthers:
		f.Held = lease.HeldPatience
	case failure.WaitForRoom:
		f.Held = lease.HeldRate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.limit() - d.done
	if n <= 0 { // the handler fails at the shard's end
		return f
	}
	if f.Records = n; d.Alone > 0 {
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
