package engine

import (
	"math/big"
	"slices"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// NewCreate returns a request to create a provisioned stream.
func NewCreate(name string, shards int) *CreateStream {
	return &CreateStream{Name: codec.Some(name), Shards: codec.Some(int64(shards))}
}

// NewDelete returns a request to delete a stream and its consumers.
func NewDelete(name string) *DeleteStream {
	return &DeleteStream{streamRef: named(name), enforce: codec.Some(true)}
}

// NewPut returns a request to put one record. The request keeps data, so the caller must not change
// it.
func NewPut(stream, key string, data []byte) *PutRecord {
	return &PutRecord{streamRef: named(stream), entry: entry{Key: codec.Some(key), Data: codec.Some(data)}}
}

// NewSplit returns a request to split a shard.
func NewSplit(stream, shard, start string) *SplitShard {
	return &SplitShard{streamRef: named(stream), Shard: codec.Some(shard), Start: codec.Some(start)}
}

// NewMerge returns a request to merge two shards.
func NewMerge(stream, shard, adjacent string) *MergeShards {
	return &MergeShards{streamRef: named(stream), Shard: codec.Some(shard), Adjacent: codec.Some(adjacent)}
}

// NewScale returns a request to change the number of shards.
func NewScale(stream string, shards int) *UpdateShardCount {
	return &UpdateShardCount{streamRef: named(stream), Count: codec.Some(int64(shards)), Scaling: codec.Some("UNIFORM_SCALING")}
}

// NewRegister returns a request to register a consumer.
func (e *Engine) NewRegister(stream, consumer string) *RegisterStreamConsumer {
	return &RegisterStreamConsumer{streamRef: streamRef{arn: codec.Some(e.StreamARN(stream))}, Name: codec.Some(consumer)}
}

func named(stream string) streamRef { return streamRef{name: codec.Some(stream)} }

// Run carries out a request without HTTP. The request counts against no rate limit, and the answer
// is discarded.
func (e *Engine) Run(now time.Time, r Request) error {
	return r.do(&call{Engine: e, now: now, unlimited: true, out: codec.NewEncoder(codec.JSON, nil, false)})
}

// FinishConsumer makes a consumer ACTIVE immediately and returns its ARN.
func (e *Engine) FinishConsumer(now time.Time, of, name string) (arn string, err error) {
	err = e.view(now, of, func(_ *call, s *stream) error {
		c := s.consumers[name]
		if c == nil {
			return notFound("Consumer %s of stream %s not found.", name, of)
		}
		if c.status == creating {
			c.status = active
		}
		arn = c.arn
		return nil
	})
	return arn, err
}

// Finish applies all pending changes of a stream immediately. It does nothing if the stream does
// not exist.
func (e *Engine) Finish(now time.Time, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.streams[stream]; s != nil {
		for i := range s.steps {
			if s.steps[i].at.After(now) {
				s.steps[i].at = now
			}
		}
		e.settle(s, now)
	}
	return nil
}

// view calls f with the current state of a stream. The lock is held during the call.
func (e *Engine) view(now time.Time, name string, f func(*call, *stream) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &call{Engine: e, now: now}
	s, err := c.find(name)
	if err != nil {
		return err
	}
	e.expireAll(s, now)
	return f(c, s)
}

// Middle returns the start of the upper half of an open shard's hash range.
func (e *Engine) Middle(now time.Time, name, shard string) (middle string, err error) {
	err = e.view(now, name, func(c *call, s *stream) error {
		sh, err := c.openShard(s, shard)
		if err != nil {
			return err
		}
		sum := new(big.Int).Add(sh.hashes.start.big(), sh.hashes.end.big())
		sum.Add(sum, big.NewInt(1)) // of two keys in the middle, use the upper one
		middle = sum.Rsh(sum, 1).String()
		return nil
	})
	return middle, err
}

// Children returns the IDs of the children of a closed shard.
func (e *Engine) Children(now time.Time, name, shard string) (ids []string, err error) {
	err = e.view(now, name, func(_ *call, s *stream) error {
		number, ok := parseShardID(shard)
		sh := s.byNumber[number]
		if !ok || sh == nil || len(sh.children) == 0 {
			return notFound("Shard %s in stream %s has no children.", shard, name)
		}
		for _, ch := range sh.children {
			ids = append(ids, ch.id)
		}
		return nil
	})
	return ids, err
}

// OpenShards returns the IDs of the open shards, sorted by hash range.
func (e *Engine) OpenShards(now time.Time, name string) (ids []string, err error) {
	err = e.view(now, name, func(_ *call, s *stream) error {
		for _, sh := range s.open {
			ids = append(ids, sh.id)
		}
		return nil
	})
	return ids, err
}

// Status returns a stream's status, such as "ACTIVE".
func (e *Engine) Status(now time.Time, name string) (status string, err error) {
	err = e.view(now, name, func(_ *call, s *stream) error {
		status = string(s.status)
		return nil
	})
	return status, err
}

// Records calls f for each record of a stream, grouped by shard and in the order of each shard.
func (e *Engine) Records(now time.Time, name string, f func(shard, sequence, key string, data []byte, arrival time.Time)) error {
	type run struct {
		shard   string
		records []record
	}
	var runs []run
	err := e.view(now, name, func(_ *call, s *stream) error {
		for _, sh := range s.shards {
			runs = append(runs, run{sh.id, slices.Clip(sh.records)})
		}
		return nil
	})
	for _, r := range runs {
		for i := range r.records {
			rec := &r.records[i]
			f(r.shard, rec.sequence, rec.key.V, rec.data, time.UnixMilli(rec.arrival))
		}
	}
	return err
}
