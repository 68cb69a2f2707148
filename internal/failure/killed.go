package failure

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A record that was dead-lettered because it killed its workers is not in the sink. With
// ShardHandlers.Position, reading begins at the position of the sink. The next owner therefore
// reads the record again, and the record would kill it. To prevent that, the names of such records
// are stored with the deaths of the shard's owners. They are stored in [lease.Deaths].Beyond. If
// keys are handled in parallel, that field contains the done records after the checkpoint instead.
// No shard needs both, because RunShards and RunPull reject Options.Concurrency.
//
// A name is a hash of 48 bits, and fewer than fifty names fit. For each record, the chance of a
// collision with one of them is below 1e-12.

const (
	killedForm = 2 // the first byte of the text; package keyed uses another value
	killedName = 6 // number of bytes of the hash of a position
)

// Killed contains the names of records that were dead-lettered because they killed their workers.
// The newest name is last.
type Killed []byte

// ParseKilled parses the result of Text. It returns nil for any other text.
func ParseKilled(text string) Killed {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] != killedForm || (len(raw)-1)%killedName != 0 {
		return nil
	}
	return raw[1:]
}

// Text returns the stored form. most is its maximum size in bytes. Text omits the oldest names if
// they do not fit.
func (k Killed) Text(most int) string {
	room := (base64.RawURLEncoding.DecodedLen(most) - 1) / killedName
	names := k[max(len(k)-max(room, 0)*killedName, 0):]
	if len(names) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append([]byte{killedForm}, names...))
}

// nameOfKilled returns a hash of the position after a record.
func nameOfKilled(record shard.Position) []byte {
	seq := strings.TrimLeft(record.SequenceNumber(), "0")
	sum := sha256.Sum256([]byte(seq + "+" + strconv.FormatUint(uint64(record.Done()), 10)))
	return sum[:killedName]
}

// Add returns the set with a record.
func (k Killed) Add(record shard.Position) Killed {
	if k.Has(record) {
		return k
	}
	return append(slices.Clip(k), nameOfKilled(record)...)
}

// Has reports whether the set contains a record.
func (k Killed) Has(record shard.Position) bool {
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

// WithKilled returns d with the names of killed records, to be stored by the owner at the given
// epoch.
func WithKilled(d lease.Deaths, k Killed, epoch uint64) lease.Deaths {
	d.Beyond, d.Since = "", epoch
	if d.Beyond = k.Text(d.RoomBeyond()); d.Beyond == "" {
		d.Since = 0
	}
	return d
}
