package kinesistest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// The methods in this file are shorthand for tests. They act at once, independent of StateDelay,
// count against no limit, and are neither seen by control functions nor counted by Requests. A
// failure fails the test that was passed to NewServer, and panics for a server of Start. From
// another goroutine than the test's own, use a Client.

// Record is a stored record.
type Record struct {
	Shard          string // ID
	SequenceNumber string
	PartitionKey   string // empty if the record was put without one
	Data           []byte
	Arrival        time.Time
}

// CreateStream creates a provisioned stream with a number of shards.
func (s *Server) CreateStream(name string, shards int) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewCreate(name, shards)))
	s.must(s.engine.Finish(time.Now(), name))
}

// DeleteStream removes a stream, with its consumers.
func (s *Server) DeleteStream(name string) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewDelete(name)))
	s.must(s.engine.Finish(time.Now(), name))
}

// Put puts a record and returns the ID of its shard and its sequence number.
func (s *Server) Put(stream, key string, data []byte) (shard, sequence string) {
	s.help()
	put := engine.NewPut(stream, key, bytes.Clone(data))
	s.must(s.engine.Run(time.Now(), put))
	return put.Shard, put.Sequence
}

// Split splits an open shard in the middle of its range and returns the IDs of
// its children, the lower one first.
func (s *Server) Split(stream, shard string) (lower, upper string) {
	s.help()
	middle, err := s.engine.Middle(time.Now(), stream, shard)
	s.must(err)
	s.must(s.engine.Run(time.Now(), engine.NewSplit(stream, shard, middle)))
	s.must(s.engine.Finish(time.Now(), stream))
	children, err := s.engine.Children(time.Now(), stream, shard)
	s.must(err)
	return children[0], children[1]
}

// Merge merges two open shards with adjacent ranges, in either order, and returns the ID of their
// child. MergeShards requires the lower one first.
func (s *Server) Merge(stream, shard, adjacent string) (child string) {
	s.help()
	if open := s.OpenShards(stream); slices.Index(open, adjacent) < slices.Index(open, shard) {
		shard, adjacent = adjacent, shard
	}
	s.must(s.engine.Run(time.Now(), engine.NewMerge(stream, shard, adjacent)))
	s.must(s.engine.Finish(time.Now(), stream))
	children, err := s.engine.Children(time.Now(), stream, shard)
	s.must(err)
	return children[0]
}

// Scale does the same as UpdateShardCount, with all its splits and merges.
func (s *Server) Scale(stream string, shards int) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewScale(stream, shards)))
	s.must(s.engine.Finish(time.Now(), stream))
}

// RegisterConsumer registers a fan-out consumer and returns its ARN.
func (s *Server) RegisterConsumer(stream, name string) (arn string) {
	s.help()
	s.must(s.engine.Run(time.Now(), s.engine.NewRegister(stream, name)))
	arn, err := s.engine.FinishConsumer(time.Now(), stream, name)
	s.must(err)
	return arn
}

// Subscription is a live subscription to a shard: its stream is open, and no other subscription has
// taken over.
type Subscription struct {
	Consumer string // name
	Shard    string // ID
	Began    time.Time
}

// Subscriptions returns the live subscriptions to a stream's shards, by consumer and shard. The
// caller owns the result.
func (s *Server) Subscriptions(stream string) []Subscription {
	s.help()
	found, err := s.engine.Subscriptions(time.Now(), stream)
	s.must(err)
	subs := make([]Subscription, len(found))
	for i, sub := range found {
		subs[i] = Subscription(sub)
	}
	return subs
}

// OpenShards returns the IDs of a stream's open shards in the order of their hash ranges.
func (s *Server) OpenShards(stream string) []string {
	s.help()
	ids, err := s.engine.OpenShards(time.Now(), stream)
	s.must(err)
	return ids
}

// Records returns all records of a stream, by shard and in the order of each shard. The caller owns
// the result.
func (s *Server) Records(stream string) []Record {
	s.help()
	var records []Record
	s.must(s.engine.Records(time.Now(), stream, func(shard, sequence, key string, data []byte, arrival time.Time) {
		records = append(records, Record{shard, sequence, key, bytes.Clone(data), arrival})
	}))
	return records
}

// LastRecords returns the newest record of each shard of a stream, by the shard's ID; shards
// without records are omitted. The caller owns the result.
func (s *Server) LastRecords(stream string) map[string]Record {
	s.help()
	last := map[string]Record{}
	s.must(s.engine.Records(time.Now(), stream, func(shard, sequence, key string, data []byte, arrival time.Time) {
		last[shard] = Record{shard, sequence, key, data, arrival}
	}))
	for id, r := range last {
		r.Data = bytes.Clone(r.Data)
		last[id] = r
	}
	return last
}

// PutFile puts each non-empty line of a file as a record, in order, and returns their number. key
// returns the partition key of a line; nil gives each line a unique key, which spreads them over
// the shards.
func (s *Server) PutFile(stream, path string, key func(line []byte) string) int {
	s.help()
	text, err := os.ReadFile(path)
	s.must(err)
	n := 0
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			continue
		}
		n++
		k := strconv.Itoa(n)
		if key != nil {
			k = key(line)
		}
		s.Put(stream, k, line)
	}
	return n
}

// AwaitShards waits until a stream is ACTIVE and has this many open shards, after a split, a merge
// or UpdateShardCount that was requested elsewhere. It returns their IDs in the order of their hash
// ranges. It fails the test after a minute, of virtual time in a bubble. It only counts shards: it
// does not wait for a later change that results in the same number.
func (s *Server) AwaitShards(stream string, open int) []string {
	s.help()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ids := s.OpenShards(stream)
		status, err := s.engine.Status(time.Now(), stream)
		s.must(err)
		switch {
		case len(ids) == open && status == "ACTIVE":
			return ids
		case time.Since(began) >= time.Minute:
			s.must(fmt.Errorf("stream %s is %s and has %d open shards after a minute, not %d", stream, status, len(ids), open))
			return ids
		}
	}
}

func (s *Server) help() {
	if s.tb != nil {
		s.tb.Helper()
	}
}

func (s *Server) must(err error) {
	if err == nil {
		return
	}
	if s.tb == nil {
		panic("kinesistest: " + err.Error())
	}
	s.tb.Helper()
	s.tb.Fatalf("kinesistest: %v", err)
}
