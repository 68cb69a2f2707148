package engine

import (
	"encoding/json"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Types of a shard filter.
const (
	afterShardID    = "AFTER_SHARD_ID"
	atTrimHorizon   = "AT_TRIM_HORIZON"
	fromTrimHorizon = "FROM_TRIM_HORIZON"
	atLatest        = "AT_LATEST"
	atTimestamp     = "AT_TIMESTAMP"
	fromTimestamp   = "FROM_TIMESTAMP"
)

// ListShards lists the shards of a stream that match a filter.
type ListShards struct {
	streamRef
	token, start optText
	limit        optInt
	created      codec.Opt[time.Time]
	filter       shardFilter
}

type shardFilter struct {
	set       bool
	Type      optText
	ShardID   optText
	Timestamp codec.Opt[time.Time]
}

func (r *ListShards) Fields() codec.Fields {
	return r.fields(
		codec.Field{Name: "NextToken", Into: &r.token},
		codec.Field{Name: "ExclusiveStartShardId", Into: &r.start},
		codec.Field{Name: "MaxResults", Into: &r.limit},
		codec.Field{Name: "StreamCreationTimestamp", Into: &r.created},
		codec.Field{Name: "ShardFilter", Into: func(d codec.Decoder) error {
			r.filter.set = true
			return codec.Fields{
				{Name: "Type", Into: &r.filter.Type},
				{Name: "ShardId", Into: &r.filter.ShardID},
				{Name: "Timestamp", Into: &r.filter.Timestamp},
			}.Decode(d)
		}},
	)
}

func (r *ListShards) target(e *Engine) Target {
	if r.token.Set {
		t, _ := e.sealer.open(shardsTicket, r.token.V)
		return Target{Stream: e.nameOf(t.stream)}
	}
	return r.streamRef.target(e)
}

// nameOf returns the name of the stream with the given serial number, or "" if there is no such
// stream.
func (e *Engine) nameOf(serial uint64) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.bySerial[serial]; s != nil {
		return s.name
	}
	return ""
}

// shardsPage is the state of a listing, which its token contains. All pages use the times of the
// first page. Otherwise the pages of one listing would contradict each other.
type shardsPage struct {
	After string // shard ID
	Type  string `json:",omitempty"`
	Time  int64  `json:",omitempty"` // milliseconds
}

func (r *ListShards) check() error {
	var v validator
	v.intRange(r.limit, "maxResults", 1, 10_000)
	v.name(r.start, "exclusiveStartShardId")
	if r.token.Set {
		v.length(r.token.V, "nextToken", 1, 1048576)
	}
	if r.filter.set && v.required(r.filter.Type.Set, "shardFilter.type") {
		v.enum(r.filter.Type, "shardFilter.type", afterShardID, atTrimHorizon, fromTrimHorizon, atLatest, atTimestamp, fromTimestamp)
	}
	v.name(r.filter.ShardID, "shardFilter.shardId")
	v.name(r.name, "streamName")
	v.streamARN(r.arn, "streamARN")
	if err := v.err(); err != nil {
		return err
	}
	if r.token.Set {
		switch {
		case r.name.Set || r.arn.Set:
			return invalid("NextToken and StreamName cannot be provided together.")
		case r.created.Set:
			return invalid("NextToken and StreamCreationTimestamp cannot be provided together.")
		case r.start.Set:
			return invalid("NextToken and ExclusiveStartShardId cannot be provided together.")
		case r.filter.set:
			return invalid("NextToken and ShardFilter cannot be provided together: the token holds the filter.")
		}
		return nil
	}
	if !r.name.Set && !r.arn.Set {
		return invalid("Either NextToken or StreamName should be provided.")
	}
	f := &r.filter
	timed := f.Type.V == atTimestamp || f.Type.V == fromTimestamp
	switch {
	case !f.set:
	case f.Type.V == afterShardID && !f.ShardID.Set:
		return invalid("ShardFilter type AFTER_SHARD_ID needs a ShardId.")
	case f.Type.V != afterShardID && f.ShardID.Set:
		return invalid("ShardFilter type %s does not take a ShardId.", f.Type.V)
	case timed && !f.Timestamp.Set:
		return invalid("ShardFilter type %s needs a Timestamp.", f.Type.V)
	case !timed && f.Timestamp.Set:
		return invalid("ShardFilter type %s does not take a Timestamp.", f.Type.V)
	case f.Type.V == afterShardID && r.start.Set:
		return invalid("ExclusiveStartShardId and a ShardFilter of type AFTER_SHARD_ID cannot be provided together.")
	}
	return nil
}

func (r *ListShards) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	var s *stream
	var page shardsPage
	var start optText
	if r.token.Set {
		t, err := c.openPage(c.now, shardsTicket, r.token.V)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(t.text), &page); err != nil {
			return invalid("NextToken is invalid.")
		}
		start = codec.Some(page.After)
		c.mu.Lock()
		defer c.mu.Unlock()
		if s = c.bySerial[t.stream]; s == nil || !c.settle(s, c.now) {
			return notFound("The stream that NextToken was made for does not exist any more.")
		}
	} else {
		var err error
		c.mu.Lock()
		defer c.mu.Unlock()
		if s, err = c.lookup(&r.streamRef); err != nil {
			return err
		}
		if r.created.Set && !r.created.V.Truncate(time.Second).Equal(s.created.Truncate(time.Second)) {
			return notFound("Stream %s under account %s created at %s not found.", s.name, c.cfg.Account, stamp(r.created.V))
		}
		if page, start, err = r.firstPage(c.now, s); err != nil {
			return err
		}
	}
	shards, err := c.shardsAfter(s, start)
	if err != nil {
		return err
	}
	limit := pageSize(r.limit, 1000)
	var listed []*shard
	more := false
	for _, sh := range shards {
		if !page.wants(sh) {
			continue
		}
		if len(listed) == limit {
			more = true
			break
		}
		listed = append(listed, sh)
	}
	c.out.Map()
	writeShards(c.out, listed)
	if more {
		page.After = listed[len(listed)-1].id
		text, err := json.Marshal(page)
		if err != nil {
			return &Error{Code: "InternalFailure", Message: err.Error(), Status: 500}
		}
		c.out.Key("NextToken").Text(c.sealer.seal(ticket{kind: shardsTicket, issued: c.now, stream: s.serial, text: string(text)}))
	}
	c.out.End()
	return nil
}

// firstPage computes the state of a new listing from its filter, and the shard after which it
// starts.
func (r *ListShards) firstPage(now time.Time, s *stream) (shardsPage, optText, error) {
	p := shardsPage{Type: r.filter.Type.V}
	start := r.start
	horizon := s.horizon(now)
	switch p.Type {
	case afterShardID:
		start = r.filter.ShardID
		p.Type = ""
	case atTrimHorizon:
		p.Type, p.Time = atTimestamp, horizon.UnixMilli()
	case atTimestamp, fromTimestamp:
		at := r.filter.Timestamp.V
		if at.After(now.Add(time.Millisecond)) {
			return p, start, invalid("Timestamp %s of the ShardFilter is in the future.", stamp(at))
		}
		if at.Before(horizon) {
			at = horizon
		}
		p.Time = at.UnixMilli()
	}
	return p, start, nil
}

// wants reports whether the filter of the listing includes a shard.
func (p *shardsPage) wants(sh *shard) bool {
	switch p.Type {
	case atLatest:
		return sh.isOpen()
	case atTimestamp:
		return sh.created.UnixMilli() <= p.Time && (sh.isOpen() || sh.closed.UnixMilli() >= p.Time)
	case fromTimestamp:
		return sh.isOpen() || sh.closed.UnixMilli() >= p.Time
	}
	return true
}
