package weir

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/lease"
)

// A record that was given up because it killed its workers is not in the sink. With
// ShardHandlers.Position reading begins where the sink is, so the next owner reads the record again
// and would die of it. The names of these records are stored with the deaths of the shard, in the
// text that keys in parallel use for records handled beyond the checkpoint. No shard needs both,
// because RunShards refuses Options.Parallel. A name is a hash of 48 bits, so the chance that one
// of the twenty names at most is also that of another record is below 1e-13 for each record.

const (
	killedForm = 2 // the first byte of the text; package lanes uses another one
	killedName = 6 // bytes of the hash of a position
)

// killed holds the names of records that were given up because they killed their workers, the
// newest last.
type killed []byte

// parseKilled reads the form that text returns. Any other text names no record.
func parseKilled(text string) killed {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] != killedForm || (len(raw)-1)%killedName != 0 {
		return nil
	}
	return raw[1:]
}

// text returns the stored form, in at most most bytes. It leaves out the oldest names if they do
// not fit.
func (k killed) text(most int) string {
	room := (base64.RawURLEncoding.DecodedLen(most) - 1) / killedName
	names := k[max(len(k)-max(room, 0)*killedName, 0):]
	if len(names) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append([]byte{killedForm}, names...))
}

// nameOfKilled returns a hash of the position after a record.
func nameOfKilled(record Position) []byte {
	seq := strings.TrimLeft(record.SequenceNumber(), "0")
	sum := sha256.Sum256([]byte(seq + "+" + strconv.FormatUint(uint64(record.Done()), 10)))
	return sum[:killedName]
}

func (k killed) add(record Position) killed {
	if k.has(record) {
		return k
	}
	return append(slices.Clip(k), nameOfKilled(record)...)
}

func (k killed) has(record Position) bool {
	if len(k) == 0 {
		return false
	}
	name := nameOfKilled(record)
	for i := 0; i < len(k); i += killedName {
		if bytes.Equal(k[i:i+killedName], name) {
			return true
		}
	}
	return false
}

// withKilled returns d with the names of killed records, for the owner of an epoch to note.
func withKilled(d lease.Deaths, k killed, epoch uint64) lease.Deaths {
	d.Beyond, d.Since = "", epoch
	if d.Beyond = k.text(d.RoomBeyond()); d.Beyond == "" {
		d.Since = 0
	}
	return d
}

// note returns the note that the owner of an epoch makes of the trial.
func (t *trial) note(epoch uint64) lease.Deaths { return withKilled(t.deaths, t.killed, epoch) }

// remembers reports whether records that were given up may be read again, because a sink keeps the
// positions.
func (l *shardLoop) remembers() bool { return l.in.shards != nil && l.in.shards.Position != nil }

// advance moves the checkpoint to a position, also past records that the sink does not get because
// they are dropped or given up. The names of killed records count only at the position at which
// they are noted, so advance notes them again at the new one. A term that no longer handles records
// one by one lets the names go: by then the sink has passed those records.
func (l *shardLoop) advance(to Position) {
	if l.remembers() && l.namesKilled() && to.Compare(l.term.At()) > 0 {
		d := l.term.Deaths()
		note := lease.Deaths{At: to, Count: d.Count, Record: to}
		l.term.NoteSoon(withKilled(note, parseKilled(d.Beyond), l.term.Lease.Epoch))
	}
	l.term.Advance(to)
}

// namesKilled reports whether the last note of the deaths of a term names killed records that the
// next owner needs. A term decides at its first record how it handles records.
func (l *shardLoop) namesKilled() bool {
	if h := l.handles; h != nil && h.judged && h.trial == nil {
		return false
	}
	return parseKilled(l.term.Deaths().Beyond) != nil
}

// passOver leaves out the next record of a delivery, which was given up before.
func (l *shardLoop) passOver(d *delivery, id string) {
	d.mu.Lock()
	d.done++
	done := d.done
	d.mu.Unlock()
	d.moveHead(done)
	d.gone++
	l.log().Info("a record that was given up before is passed over; the sink does not have it, and its letter does", "record", id)
}
