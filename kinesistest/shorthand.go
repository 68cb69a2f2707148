package kinesistest

import (
	"bytes"
	"slices"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// The methods in this file let a test speak briefly. They act at once, whatever
// StateDelay says, count against no limit, and neither are seen by control
// functions nor counted by Requests. What cannot be done fails the test that
// NewServer was given, and panics for a server that Start started; from another
// goroutine than the test's own, use a Client.

// Record is a record as the server keeps it.
type Record struct {
	Shard          string // ID
	SequenceNumber string
	PartitionKey   string // empty if the record was put without one
	Data           []byte
	Arrival        time.Time
}

// CreateStream makes a provisioned stream with a number of shards.
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

// Merge merges two open shards with adjoining ranges, in either order, and
// returns the ID of their child. MergeShards wants the lower one first.
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

// Scale does what UpdateShardCount does, with all its splits and merges.
func (s *Server) Scale(stream string, shards int) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewScale(stream, shards)))
	s.must(s.engine.Finish(time.Now(), stream))
}

// RegisterConsumer registers a consumer of fan-out and returns its ARN.
func (s *Server) RegisterConsumer(stream, name string) (arn string) {
	s.help()
	s.must(s.engine.Run(time.Now(), s.engine.NewRegister(stream, name)))
	arn, err := s.engine.FinishConsumer(time.Now(), stream, name)
	s.must(err)
	return arn
}

// Subscription is a subscription to a shard that is live: its stream is open,
// and no other one took over from it.
type Subscription struct {
	Consumer string // name
	Shard    string // ID
	Began    time.Time
}

// Subscriptions returns the live subscriptions to a stream's shards, by consumer
// and shard. The caller owns what is returned.
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

// OpenShards returns the IDs of a stream's open shards in the order of their
// hash ranges.
func (s *Server) OpenShards(stream string) []string {
	s.help()
	ids, err := s.engine.OpenShards(time.Now(), stream)
	s.must(err)
	return ids
}

// Records returns all records that a stream keeps, by shard and in each shard
// in order. The caller owns what is returned.
func (s *Server) Records(stream string) []Record {
	s.help()
	var records []Record
	s.must(s.engine.Records(time.Now(), stream, func(shard, sequence, key string, data []byte, arrival time.Time) {
		records = append(records, Record{shard, sequence, key, bytes.Clone(data), arrival})
	}))
	return records
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
