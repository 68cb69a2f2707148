package engine

import (
	"math/big"
	"slices"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// SplitShard replaces an open shard by two child shards.
type SplitShard struct {
	streamRef
	Shard, Start optText
}

func (r *SplitShard) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "ShardToSplit", Into: &r.Shard}, codec.Field{Name: "NewStartingHashKey", Into: &r.Start})
}

func (r *SplitShard) target(*Engine) Target { return Target{Stream: r.stream(), Shard: r.Shard.V} }

func (r *SplitShard) do(c *call) error {
	var v validator
	v.requiredName(r.Shard, "shardToSplit")
	if v.required(r.Start.Set, "newStartingHashKey") {
		v.pattern(r.Start.V, "newStartingHashKey", hashPattern)
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	if err := c.shardIDs(r.stream(), r.Shard.V); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.reshardable(&r.streamRef)
	if err != nil {
		return err
	}
	sh, err := c.openShard(s, r.Shard.V)
	if err != nil {
		return err
	}
	if u := c.usage(c.now); u.shards+1 > c.cfg.ShardLimit {
		return c.tooManyShards(u.shards, 1)
	}
	start, ok := parseHashKey(r.Start.V)
	// The service requires that the lower range has room for two keys.
	if !ok || !sh.hashes.contains(start) || start.compare(sh.hashes.start.next()) <= 0 || start.compare(sh.hashes.end) >= 0 {
		return invalid("NewStartingHashKey %s used in SplitShard() on shard %s in stream %s under account %s is not both greater than one plus the shard's StartingHashKey %s and less than the shard's EndingHashKey %s.",
			r.Start.V, sh.id, s.name, c.cfg.Account, sh.hashes.start, sh.hashes.end)
	}
	c.change(s, c.now, updating, func(at time.Time) { s.split(sh, at, start) })
	return nil
}

// MergeShards replaces two adjacent open shards by one child shard.
type MergeShards struct {
	streamRef
	Shard, Adjacent optText
}

func (r *MergeShards) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "ShardToMerge", Into: &r.Shard}, codec.Field{Name: "AdjacentShardToMerge", Into: &r.Adjacent})
}

func (r *MergeShards) target(*Engine) Target { return Target{Stream: r.stream(), Shard: r.Shard.V} }

func (r *MergeShards) do(c *call) error {
	var v validator
	v.requiredName(r.Shard, "shardToMerge")
	v.requiredName(r.Adjacent, "adjacentShardToMerge")
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	if err := c.shardIDs(r.stream(), r.Shard.V, r.Adjacent.V); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.reshardable(&r.streamRef)
	if err != nil {
		return err
	}
	a, err := c.openShard(s, r.Shard.V)
	if err != nil {
		return err
	}
	b, err := c.openShard(s, r.Adjacent.V)
	if err != nil {
		return err
	}
	if slices.Index(s.open, a)+1 != slices.Index(s.open, b) { // the lower shard must come first
		return invalid("Shards %s and %s in stream %s under account %s are not an adjacent pair of shards eligible for merging", a.id, b.id, s.name, c.cfg.Account)
	}
	c.change(s, c.now, updating, func(at time.Time) { s.merge(a, b, at) })
	return nil
}

// reshardable returns the stream like active. It fails if the stream does not allow changes of its
// shards.
func (c *call) reshardable(ref *streamRef) (*stream, error) {
	s, err := c.active(ref)
	if err == nil && s.onDemand {
		return nil, validation("Request is invalid. Stream %s under account %s is in On-Demand mode.", s.name, c.cfg.Account)
	}
	return s, err
}

// shardIDs returns an error if one of the IDs is invalid. The service checks IDs before it looks up
// the stream.
func (c *call) shardIDs(stream string, ids ...string) error {
	for _, id := range ids {
		if _, ok := parseShardID(id); !ok {
			return notFound("Could not find shard %s in stream %s under account %s.", id, stream, c.cfg.Account)
		}
	}
	return nil
}

// anyShard returns a shard to read from, which may be open or closed. If the stream or the shard is
// missing, anyShard returns the same error, like the service. The caller holds e.mu.
func (c *call) anyShard(stream, id string) (*stream, *shard, error) {
	if err := c.shardIDs(stream, id); err != nil {
		return nil, nil, err
	}
	number, _ := parseShardID(id)
	s, err := c.find(stream)
	if err == nil {
		if sh := c.shard(s, number, c.now); sh != nil {
			return s, sh, nil
		}
	}
	return nil, nil, c.noShard(number, stream)
}

func (c *call) noShard(number uint32, stream string) error {
	return notFound("Shard %s in stream %s under account %s does not exist", shardID(number), stream, c.cfg.Account)
}

func (c *call) openShard(s *stream, id string) (*shard, error) {
	if err := c.shardIDs(s.name, id); err != nil {
		return nil, err
	}
	number, _ := parseShardID(id)
	id = shardID(number)
	sh := c.shard(s, number, c.now)
	if sh == nil {
		return nil, notFound("Could not find shard %s in stream %s under account %s.", id, s.name, c.cfg.Account)
	}
	if !sh.isOpen() {
		return nil, invalid("Shard %s in stream %s under account %s has already been merged or split, and thus is not eligible for merging or splitting.", id, s.name, c.cfg.Account)
	}
	return sh, nil
}

// UpdateShardCount splits and merges shards until the stream has the requested number of equal
// shards.
type UpdateShardCount struct {
	streamRef
	Count   optInt
	Scaling optText
}

func (r *UpdateShardCount) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "TargetShardCount", Into: &r.Count}, codec.Field{Name: "ScalingType", Into: &r.Scaling})
}

func (r *UpdateShardCount) do(c *call) error {
	var v validator
	if v.required(r.Count.Set, "targetShardCount") {
		v.intRange(r.Count, "targetShardCount", 1, 100_000)
	}
	if v.required(r.Scaling.Set, "scalingType") {
		v.enum(r.Scaling, "scalingType", "UNIFORM_SCALING")
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.reshardable(&r.streamRef)
	if err != nil {
		return err
	}
	have, want := len(s.open), int(r.Count.V)
	u := c.usage(c.now)
	switch {
	case want > maxShardCount:
		return limitExceeded("Target shard count or number of open shards cannot be greater than %d. Current open shard count: %d Target shard count: %d", maxShardCount, have, want)
	case want > 2*have:
		return limitExceeded("UpdateShardCount cannot scale up over double your current open shard count. Current open shard count: %d Target shard count: %d", have, want)
	case 2*want < have:
		return limitExceeded("UpdateShardCount cannot scale down below half your current open shard count. Current open shard count: %d Target shard count: %d", have, want)
	case u.shards-have+want > c.cfg.ShardLimit:
		return c.tooManyShards(u.shards, int64(want-have))
	case !c.unlimited && s.scalings.full(c.now, 10):
		return limitExceeded("Stream %s under account %s was scaled 10 times within 24 hours.", s.name, c.cfg.Account)
	}
	s.scalings.add(c.now)
	c.change(s, c.now, updating, s.scale(want)...)

	c.out.Map()
	c.out.Key("StreamName").Text(s.name)
	c.out.Key("StreamARN").Text(s.arn)
	c.out.Key("CurrentShardCount").Int(int64(have))
	c.out.Key("TargetShardCount").Int(int64(want))
	c.out.End()
	return nil
}

// scale plans the splits and merges that lead to n equal shards. It splits at every new border
// first, and then merges across every old border.
func (s *stream) scale(n int) (steps []func(at time.Time)) {
	have := make([]hashKey, len(s.open))
	for i, sh := range s.open {
		have[i] = sh.hashes.start
	}
	splits, merges := bordersToMove(have, uniformStarts(n))
	for _, border := range splits {
		steps = append(steps, func(at time.Time) { s.split(s.route(border), at, border) })
	}
	for _, border := range merges {
		steps = append(steps, func(at time.Time) { s.merge(s.route(border.prev()), s.route(border), at) })
	}
	return steps
}

// bordersToMove compares the starts of the existing ranges with the wanted starts. Both slices are
// sorted. Rounding can shift equal borders by some units, and such a border stays in place.
func bordersToMove(have, want []hashKey) (splits, merges []hashKey) {
	slack := big.NewInt(int64(len(have)+len(want)) + 2)
	near := func(a, b hashKey) bool {
		d := new(big.Int).Sub(a.big(), b.big())
		return d.Abs(d).Cmp(slack) <= 0
	}
	kept := make([]bool, len(have))
	for _, w := range want {
		i, _ := slices.BinarySearchFunc(have, w, hashKey.compare)
		switch {
		case i < len(have) && near(have[i], w):
			kept[i] = true
		case i > 0 && near(have[i-1], w):
			kept[i-1] = true
		default:
			splits = append(splits, w)
		}
	}
	for i, h := range have {
		if !kept[i] {
			merges = append(merges, h)
		}
	}
	return splits, merges
}
