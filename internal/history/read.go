package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
)

var errShort = errors.New("history: a chunk is cut off")

// Read returns the samples of a chunk, sorted by minute, and the name of the worker, or "" if it
// has none. Any program may have written the chunk. Each sample takes at least one byte, so there
// are no more samples than bytes.
func Read(c lease.HistoryChunk) (samples []Sample, worker string, err error) {
	if err := c.Check(); err != nil {
		return nil, "", err
	}
	if c.Data[0] != version {
		return nil, "", fmt.Errorf("history: a chunk has version %d, this program knows %d", c.Data[0], version)
	}
	r := reader{rest: c.Data[1:]}
	if since := r.number(); r.err == nil && since != uint64(c.Since) {
		return nil, "", fmt.Errorf("history: a chunk of minute %d says that it begins with %d", c.Since, since)
	}
	if size := r.upTo(lease.MaxWorkerBytes); size > 0 {
		worker = r.text(size)
	}
	minute := c.Since
	for len(r.rest) > 0 && r.err == nil {
		minute += int64(r.upTo(MostMinutes - 1 - uint64(minute-c.Since)))
		samples = r.block(minute, samples)
	}
	if r.err != nil {
		return nil, "", r.err
	}
	return samples, worker, nil
}

type reader struct {
	rest    []byte
	err     error
	streams []string
	table   []lease.Key
	before  []values // by index in the table
}

func (r *reader) block(minute int64, samples []Sample) []Sample {
	for range r.upTo(uint64(len(r.rest))) {
		r.entry()
		if r.err != nil {
			return nil
		}
	}
	for place, key := range r.table {
		mask := r.byte()
		if mask == 0 {
			if r.err != nil {
				return nil
			}
			continue
		}
		if mask&^announced != 0 || mask&held == 0 {
			r.fail(fmt.Errorf("history: a sample of a chunk begins with %#x, which this program does not know", mask))
			return nil
		}
		v := &r.before[place]
		for i := range v {
			if mask&(1<<i) != 0 {
				v[i] = r.byte()
			}
		}
		s := Sample{
			Key: key, Minute: minute, Lag: durationOf(v[0]), Age: durationOf(v[1]), Load: lease.Load(min(v[2], byte(lease.MaxLoad))), Busy: int(min(v[3], 100)),
		}
		if mask&hasMarks != 0 {
			s.Marks = Marks(r.byte())
		}
		if mask&hasThrottled != 0 {
			s.setThrottled(r.byte())
		}
		if r.err != nil {
			return nil
		}
		samples = append(samples, s)
	}
	return samples
}

// entry reads a shard of the table.
func (r *reader) entry() {
	place := r.upTo(uint64(len(r.streams)))
	if r.err == nil && place == uint64(len(r.streams)) {
		r.streams = append(r.streams, r.text(r.upTo(lease.MaxNameBytes)))
	}
	shard := r.number()
	if r.err != nil {
		return
	}
	key := lease.Key{Stream: r.streams[place]}
	if shard&1 == 1 {
		key.Shard = fmt.Sprintf("%s%0*d", numbered, digits, min(shard>>1, 999_999_999_999))
	} else if key.Shard = r.text(shard >> 1); len(key.Shard) > lease.MaxNameBytes {
		r.fail(fmt.Errorf("history: the ID of a shard has %d bytes", len(key.Shard)))
	}
	r.table, r.before = append(r.table, key), append(r.before, values{})
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail(errShort)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// upTo reads a number with a maximum.
func (r *reader) upTo(most uint64) uint64 {
	n := r.number()
	if n > most {
		r.fail(fmt.Errorf("history: a number of a chunk is %d, and may be %d at most", n, most))
		return 0
	}
	return n
}

func (r *reader) text(size uint64) string {
	if size == 0 || size > uint64(len(r.rest)) {
		r.fail(errShort)
		return ""
	}
	s := string(r.rest[:size])
	r.rest = r.rest[size:]
	if !utf8.ValidString(s) {
		r.fail(errors.New("history: a name of a chunk is no UTF-8"))
	}
	return s
}
