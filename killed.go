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
// and would die of it. Which records these are is kept beside what is known of deaths, in the text
// that says what is done beyond the checkpoint when keys are handled in parallel. Both are never
// needed at once, because RunShards refuses Options.Parallel.

const (
	killedForm = 2 // the first byte of the text; package lanes uses another one
	killedName = 6 // bytes of the hash of a position
)

// killed holds the names of records that were given up because they killed their workers, the
// newest last.
type killed []byte

// parseKilled reads what text wrote. What is not that names no record.
func parseKilled(text string) killed {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] != killedForm || (len(raw)-1)%killedName != 0 {
		return nil
	}
	return raw[1:]
}

// text returns the form that is stored, in at most so many bytes. The oldest names are left out
// where there is no room.
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

// note is what the owner of an epoch notes of the trial.
func (t *trial) note(epoch uint64) lease.Deaths { return withKilled(t.deaths, t.killed, epoch) }

// remembers reports whether records that were given up may be read again, because a sink keeps the
// positions.
func (l *shardLoop) remembers() bool { return l.in.shards != nil && l.in.shards.Position != nil }

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
