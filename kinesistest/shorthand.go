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

// The methods in this file are shorthand for tests. They take effect immediately, whatever
// StateDelay is. They count against no rate limit. Control functions do not receive them, and
// Requests does not count them. An error fails the test that was passed to NewServer. On a server
// from Start, an error panics. Use a Client in goroutines other than the test's own.

// Record is a stored record.
type Record struct {
	Shard          string // ID
	SequenceNumber string
	PartitionKey   string // empty if the record has no key
	Data           []byte
	Arrival        time.Time
}

// CreateStream creates a provisioned stream with the given number of shards.
func (s *Server) CreateStream(name string, shards int) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewCreate(name, shards)))
	s.must(s.engine.Finish(time.Now(), name))
}

// DeleteStream deletes a stream and its consumers. A stream with queues cannot be deleted: call
// [Server.DeleteQueue] first.
func (s *Server) DeleteStream(name string) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewDelete(name)))
	s.must(s.engine.Finish(time.Now(), name))
}

// Put stores a record and returns the shard's ID and the record's sequence number.
func (s *Server) Put(stream, key string, data []byte) (shard, sequence string) {
	s.help()
	put := engine.NewPut(stream, key, bytes.Clone(data))
	s.must(s.engine.Run(time.Now(), put))
	return put.Shard, put.Sequence
}

// Split splits an open shard in the middle of its hash range. It returns the IDs of the two child
// shards, the lower one first.
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

// Merge merges two open shards with adjacent hash ranges and returns the ID of their child shard.
// The order of the two shards does not matter, although MergeShards requires the lower one first.
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

// Scale changes the number of shards like UpdateShardCount, with the same splits and merges.
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

// Subscription describes a live subscription to a shard. The stream of a live subscription is open,
// and no other subscription has taken it over.
type Subscription struct {
	Consumer string // name
	Shard    string // ID
	Began    time.Time
}

// Subscriptions returns the live subscriptions to the shards of a stream, sorted by consumer and
// shard. The caller owns the result.
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

// Records returns all records of a stream, grouped by shard and in the order of each shard. The
// caller owns the result.
func (s *Server) Records(stream string) []Record {
	s.help()
	var records []Record
	s.must(s.engine.Records(time.Now(), stream, func(shard, sequence, key string, data []byte, arrival time.Time) {
		records = append(records, Record{shard, sequence, key, bytes.Clone(data), arrival})
	}))
	return records
}

// LastRecords returns the newest record of each shard of a stream. The keys of the map are shard
// IDs. Shards without records are omitted. The caller owns the result.
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

// PutFile puts each non-empty line of a file as a record, in order, and returns the number of
// records. key returns the partition key of a line. If key is nil, each line gets a unique key,
// which spreads the lines over all shards.
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

// AwaitShards waits until a stream is ACTIVE and has the given number of open shards. Use it after
// another program requested a split, a merge or UpdateShardCount. It returns the IDs of the open
// shards, sorted by hash range. It fails the test after a minute, which is virtual time in a
// bubble. AwaitShards only counts shards, so it cannot detect a change that keeps the number the
// same.
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
