package engine

import (
	"math"
	"time"
)

// Limits of the data plane for one shard.
const (
	readCallsPerSecond     = 5
	readBytesPerSecond     = 2 << 20
	iteratorCallsPerSecond = 5
	writeRecordsPerSecond  = 1000
	writeBytesPerSecond    = 1 << 20

	// Limits for one pair of consumer and shard.
	subscribeCallsPerSecond = 1
	fanOutBytesPerSecond    = 2 << 20
)

// Limits on sizes and counts. NoLimits does not disable them.
const (
	maxPageBytes     = 10 << 20
	maxPageRecords   = 10_000
	maxPutRecords    = 500
	maxPutBytes      = 10 << 20
	maxKeyLength     = 256
	maxTags          = 50
	maxConsumers     = 20
	maxStreamsInWork = 5 // streams, or consumers, in state CREATING
	maxShardCount    = 10_000
)

// bucket is a token bucket. It refills at a rate per second, and holds at most the tokens of one
// second. A single large use may overdraw it.
type bucket struct {
	tokens float64
	at     time.Time // the time at which tokens was correct; zero means that the bucket is full
}

func (b *bucket) level(now time.Time, rate float64) float64 {
	if b.at.IsZero() {
		return rate
	}
	return min(rate, b.tokens+rate*max(0, now.Sub(b.at).Seconds()))
}

// has reports whether n tokens can be used now. A full bucket also permits uses that are larger
// than the tokens of one second. The tolerance covers rounding errors.
func (b *bucket) has(now time.Time, rate, n float64) bool {
	return b.level(now, rate) >= min(n, rate)-1e-6
}

func (b *bucket) use(now time.Time, rate, n float64) {
	b.tokens, b.at = b.level(now, rate)-n, now
}

// useRead takes the bytes of a page from the bucket. A page that is larger than the limit of one
// second blocks the shard for the time in which the rate allows that many bytes: five seconds for
// 10 MiB.
func (b *bucket) useRead(now time.Time, rate, n float64) {
	b.use(now, rate, n)
	if n > rate {
		b.tokens = math.Min(b.tokens, -n)
	}
}

// hasAny reports whether the bucket is not overdrawn. It serves uses whose size is not yet known.
func (b *bucket) hasAny(now time.Time, rate float64) bool {
	return b.level(now, rate) >= -1e-6
}

// until returns the time until n tokens can be used.
func (b *bucket) until(now time.Time, rate, n float64) time.Duration {
	return time.Duration(math.Ceil((min(n, rate) - b.level(now, rate)) / rate * float64(time.Second)))
}

// shardLimits are the budgets of one shard.
type shardLimits struct {
	readCalls, readBytes, iterators, writeRecords, writeBytes bucket
}

// callLimit is a limit on the calls of one operation.
type callLimit struct {
	rate      float64
	perStream bool // the limit applies to each stream, not to the account
}

var callLimits = map[string]callLimit{
	"AddTagsToStream":                        {rate: 5},
	"CreateStream":                           {rate: 5},
	"DecreaseStreamRetentionPeriod":          {rate: 5},
	"DeleteResourcePolicy":                   {rate: 5},
	"DeleteStream":                           {rate: 5},
	"DeregisterStreamConsumer":               {rate: 5, perStream: true},
	"DescribeAccountSettings":                {rate: 5},
	"DescribeLimits":                         {rate: 1},
	"DescribeStream":                         {rate: 10},
	"DescribeStreamConsumer":                 {rate: 20, perStream: true},
	"DescribeStreamSummary":                  {rate: 20},
	"DisableEnhancedMonitoring":              {rate: 5},
	"EnableEnhancedMonitoring":               {rate: 5},
	"GetResourcePolicy":                      {rate: 5},
	"IncreaseStreamRetentionPeriod":          {rate: 5},
	"ListShards":                             {rate: 1000, perStream: true},
	"ListStreamConsumers":                    {rate: 5, perStream: true},
	"ListStreams":                            {rate: 5},
	"ListTagsForResource":                    {rate: 5},
	"ListTagsForStream":                      {rate: 5},
	"MergeShards":                            {rate: 5},
	"PutResourcePolicy":                      {rate: 5},
	"RegisterStreamConsumer":                 {rate: 5},
	"RemoveTagsFromStream":                   {rate: 5},
	"SplitShard":                             {rate: 5},
	"TagResource":                            {rate: 5},
	"UntagResource":                          {rate: 5},
	"UpdateAccountSettings":                  {rate: 5},
	"UpdateMaxRecordSize":                    {rate: 5},
	"UpdateShardCount":                       {rate: 10},
	"UpdateStreamRecordDistributionStrategy": {rate: 5},
	"UpdateStreamWarmThroughput":             {rate: 5},
}

// admit counts a call against the limit of its operation, and returns an error if the limit is
// exceeded.
func (e *Engine) admit(now time.Time, action string, r Request) error {
	limit, limited := callLimits[action]
	if e.cfg.NoLimits || !limited {
		return nil
	}
	stream := r.target(e).Stream
	e.mu.Lock()
	defer e.mu.Unlock()
	key := action
	if limit.perStream {
		if e.streams[stream] == nil {
			return nil // a name without a stream gets no bucket
		}
		key += "/" + stream
	}
	b := e.calls[key]
	if b == nil {
		b = &bucket{}
		e.calls[key] = b
	}
	if !b.has(now, limit.rate, 1) {
		if limit.perStream {
			return limitExceeded("Rate exceeded for stream %s under account %s.", stream, e.cfg.Account)
		}
		return limitExceeded("Rate exceeded for account %s.", e.cfg.Account)
	}
	b.use(now, limit.rate, 1)
	return nil
}

// rolling contains the times of events within the last 24 hours.
type rolling []time.Time

func (r *rolling) full(now time.Time, most int) bool {
	kept := (*r)[:0]
	for _, t := range *r {
		if now.Sub(t) < 24*time.Hour {
			kept = append(kept, t)
		}
	}
	*r = kept
	return len(kept) >= most
}

func (r *rolling) add(now time.Time) { *r = append(*r, now) }
