// Package model is a model of Kinesis for the simulation. It has streams and shards that split and
// merge, records that are trimmed, iterators that expire, and the protocol. It has no goroutine and
// no clock. It imports nothing of weir, so that weir and the model implement the behaviour of
// Kinesis independently.
package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// Service is one region with its streams. It is not safe for concurrent use.
type Service struct {
	streams map[string]*Stream
	seq     uint64 // last assigned sequence number
	lives   int64  // number of streams created so far
}

// Stream is a stream from its creation to its deletion.
type Stream struct {
	Name   string
	Born   time.Time
	Life   int64 // distinguishes streams with the same name
	Shards []*Shard
	made   map[string]time.Time // creation times of consumers
}

// Shard is a shard with its records in order.
type Shard struct {
	ID       string
	Name     string // includes the life of the stream
	Parents  []*Shard
	Children []*Shard
	Lo, Hi   uint64 // upper 64 bits of the first and the last hash key
	Start    uint64 // sequence number before the first record
	Closed   time.Time
	Records  []Record // all records so far
	Trimmed  int      // number of expired records
	GoneAt   time.Time
	hashes   hashes
	sub      *Subscription // subscription of the consumer
}

// Record is a stored record.
type Record struct {
	Seq     uint64
	Key     string
	Data    []byte
	Rest    []byte // second part of the data, which many records may share
	Arrival time.Time
}

func (r *Record) size() int { return len(r.Data) + len(r.Rest) }

// New returns a Service without streams.
func New() *Service { return &Service{streams: map[string]*Stream{}, seq: 1000} }

// Number formats a sequence number.
func Number(seq uint64) string {
	b := [21]byte{'4', '9'}
	for i := len(b) - 1; i > 1; i-- {
		b[i] = '0' + byte(seq%10)
		seq /= 10
	}
	return string(b[:])
}

// seqOf returns the number that Number formats.
func seqOf(number string) (uint64, bool) {
	if len(number) != 21 || number[:2] != "49" {
		return 0, false
	}
	n, err := strconv.ParseUint(number[2:], 10, 64)
	return n, err == nil
}

// Create creates a stream.
func (s *Service) Create(name string, shards int, now time.Time) *Stream {
	s.lives++
	st := &Stream{Name: name, Born: now.Truncate(time.Millisecond), Life: s.lives}
	s.streams[name] = st
	step := math.MaxUint64/uint64(shards) + 1
	for i := range shards {
		hi := uint64(math.MaxUint64)
		if i < shards-1 {
			hi = uint64(i+1)*step - 1
		}
		s.add(st, uint64(i)*step, hi)
	}
	return st
}

// Delete removes a stream.
func (s *Service) Delete(name string) { delete(s.streams, name) }

// Stream returns the stream with this name, or nil.
func (s *Service) Stream(name string) *Stream { return s.streams[name] }

func (s *Service) add(st *Stream, lo, hi uint64, parents ...*Shard) *Shard {
	s.seq++
	id := fmt.Sprintf("shardId-%012d", len(st.Shards))
	sh := &Shard{ID: id, Name: NameOf(st.Life, id), Parents: parents, Lo: lo, Hi: hi, Start: s.seq, hashes: hashesOf(lo, hi)}
	for _, p := range parents {
		p.Children = append(p.Children, sh)
	}
	st.Shards = append(st.Shards, sh)
	return sh
}

// NameOf returns a name for a shard. The name distinguishes shards with the same ID, in successive
// streams with the same name.
func NameOf(life int64, id string) string { return strconv.FormatInt(life, 10) + "/" + id }

// Put appends a record to the shard that its key selects.
func (s *Service) Put(st *Stream, key string, data, rest []byte, now time.Time) (*Shard, Record) {
	h := Hash(key)
	for _, sh := range st.Shards {
		if sh.Closed.IsZero() && sh.Lo <= h && h <= sh.Hi {
			s.seq += 1 + h%3
			r := Record{Seq: s.seq, Key: key, Data: data, Rest: rest, Arrival: now}
			sh.Records = append(sh.Records, r)
			return sh, r
		}
	}
	return nil, Record{}
}

// Hash returns the hash of a key. Kinesis uses MD5, but a consumer cannot detect the difference.
func Hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 31 // FNV's upper bits differ little between short keys
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// Open returns the open shards.
func (st *Stream) Open() []*Shard {
	var open []*Shard
	for _, sh := range st.Shards {
		if sh.Closed.IsZero() {
			open = append(open, sh)
		}
	}
	return open
}

// Split replaces a shard by two. It returns false if the shard is closed or too narrow.
func (s *Service) Split(st *Stream, sh *Shard, now time.Time) bool {
	if !sh.Closed.IsZero() || sh.Hi-sh.Lo < 1<<16 {
		return false
	}
	sh.Closed = now
	mid := sh.Lo + (sh.Hi-sh.Lo)/2
	s.add(st, sh.Lo, mid, sh)
	s.add(st, mid+1, sh.Hi, sh)
	return true
}

// Merge replaces a shard and its upper neighbour by one shard. It returns false if there is no such
// neighbour.
func (s *Service) Merge(st *Stream, sh *Shard, now time.Time) bool {
	for _, next := range st.Shards {
		if sh.Closed.IsZero() && next.Closed.IsZero() && sh.Hi != math.MaxUint64 && next.Lo == sh.Hi+1 {
			sh.Closed, next.Closed = now, now
			s.add(st, sh.Lo, next.Hi, sh, next)
			return true
		}
	}
	return false
}

// Trim expires the records that arrived before a time. It calls the function each for every expired
// record.
func (st *Stream) Trim(before, now time.Time, each func(*Shard, Record)) {
	for _, sh := range st.Shards {
		for sh.Trimmed < len(sh.Records) && sh.Records[sh.Trimmed].Arrival.Before(before) {
			each(sh, sh.Records[sh.Trimmed])
			sh.Trimmed++
		}
		if sh.GoneAt.IsZero() && !sh.Closed.IsZero() && sh.Closed.Before(before) && sh.Trimmed == len(sh.Records) {
			sh.GoneAt = now
		}
	}
}

// shard returns the listed shard with this ID, or nil.
func (st *Stream) shard(id string) *Shard {
	for _, sh := range st.Shards {
		if sh.ID == id && sh.GoneAt.IsZero() {
			return sh
		}
	}
	return nil
}
