package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// kind is a kind of fault.
type kind struct {
	name    string
	profile string   // profile of the kind
	modes   []string // modes in turn; nil means one mode
	stores  []string // nil means all stores
	// subscribed means that the kind is only for runs in which a worker reads by fan-out.
	subscribed bool
	// failing means that the kind is only for runs with -failing, and bucket that it is only for
	// runs with -sink s3sink.
	failing, bucket bool
	play            func(*stage, round) error
}

// round is one fault of the script with its random choices. The processes are not part of it,
// because they are chosen among those that are alive.
type round struct {
	kind *kind
	mode string
	pick uint64  // selects a worker or shard
	long float64 // duration within the kind's range, from 0 to 1
	late float64 // when the second event happens, from 0 to 1
}

// between returns a duration from low to high units. r.long determines the position in that range.
func (r round) between(unit time.Duration, low, high float64) time.Duration {
	return time.Duration(float64(unit) * (low + r.long*(high-low)))
}

var (
	cuts    = []string{string(cut.Refuse), string(cut.Reset), string(cut.Blackhole), string(cut.HalfOpen), string(cut.Trickle), string(cut.Delay)}
	outages = []string{string(cut.Refuse), string(cut.Reset), string(cut.Blackhole)}
	network = []string{servers.PostgresStore, servers.DynamoDBStore, servers.RedisStore}
	file    = []string{servers.SQLiteStore}
)

// kinds contains all kinds, in the order of the documentation.
var kinds = []*kind{
	{name: "kill", profile: "workers", play: func(s *stage, r round) error { return s.kill(r, 1, false) }},
	{name: "kill the leader", profile: "workers", play: func(s *stage, r round) error { return s.kill(r, 1, true) }},
	{name: "kill two others", profile: "workers", play: func(s *stage, r round) error { return s.kill(r, 2, false) }},
	{name: "kill the leader and another", profile: "workers", play: func(s *stage, r round) error { return s.kill(r, 2, true) }},
	{name: "kill all but one", profile: "workers", play: func(s *stage, r round) error { return s.kill(r, s.Workers-1, true) }},
	{name: "kill all", profile: "workers", play: (*stage).killAll},
	{name: "freeze, short", profile: "workers", play: (*stage).freezeShort},
	{name: "freeze, long", profile: "workers", play: func(s *stage, r round) error { return s.freezeLong(r, false) }},
	{name: "freeze the leader", profile: "workers", play: func(s *stage, r round) error { return s.freezeLong(r, true) }},
	{name: "stop and restart", profile: "workers", play: (*stage).stopAndRestart},
	{name: "freeze during a handoff", profile: "workers", play: (*stage).freezeDuringHandOff},

	{name: "one worker cut off from the store", profile: "store", modes: cuts, stores: network,
		play: func(s *stage, r round) error { return s.cutStore(r, false) }},
	{name: "all cut off from the store", profile: "store", modes: cuts, stores: network,
		play: func(s *stage, r round) error { return s.cutStore(r, true) }},
	{name: "kill the store", profile: "store", stores: network, play: (*stage).killStore},
	{name: "the store's file is locked", profile: "store", stores: file, play: (*stage).lockStore},
	{name: "the store's disk is full", profile: "store", stores: file, play: (*stage).fillStore},
	{name: "kill during an outage of the store", profile: "store", modes: outages, play: (*stage).killDuringOutage},
	{name: "stop during an outage of the store", profile: "store", modes: outages, play: (*stage).stopDuringOutage},

	{name: "one worker cut off from Kinesis", profile: "kinesis", modes: cuts, play: func(s *stage, r round) error { return s.cutKinesis(r, false) }},
	{name: "all cut off from Kinesis", profile: "kinesis", modes: cuts, play: func(s *stage, r round) error { return s.cutKinesis(r, true) }},
	{name: "Kinesis throttles or fails", profile: "kinesis", modes: []string{throttled, failing, lost, torn}, play: (*stage).failKinesis},

	{name: "subscriptions end", profile: "kinesis", modes: ends, subscribed: true, play: (*stage).endSubscriptions},

	{name: "split or merge", profile: "shards", modes: []string{split, merge}, play: (*stage).reshard},
	{name: "split while the owner is frozen", profile: "shards", play: (*stage).splitFrozen},

	{name: "the downstream is away", profile: "handlers", failing: true, play: (*stage).takeDownstream},
	{name: "one worker cut off from the bucket", profile: "bucket", modes: cuts, bucket: true,
		play: func(s *stage, r round) error { return s.cutBucket(r, false) }},
	{name: "all cut off from the bucket", profile: "bucket", modes: cuts, bucket: true,
		play: func(s *stage, r round) error { return s.cutBucket(r, true) }},
}

const (
	split = "split"
	merge = "merge"
)

// script determines the order of faults for a seed. Every kind occurs once, in random order. Then
// every kind occurs again in another order, each time with its next mode.
type script struct {
	rand  *rand.Rand
	kinds []*kind
	left  []*kind
	turn  map[*kind]int
}

// newScript creates the script for a profile. A profile is "all", or a list of names of profiles
// and kinds, separated by semicolons.
func newScript(of settings) (*script, error) {
	s := &script{rand: rand.New(rand.NewPCG(of.Seed, 1)), turn: map[*kind]int{}}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(of.Profile, ";") {
		wanted[strings.TrimSpace(name)] = false
	}
	for _, k := range kinds {
		for _, name := range []string{"all", k.profile, k.name} {
			if _, is := wanted[name]; !is {
				continue
			}
			wanted[name] = true
			can := (k.stores == nil || slices.Contains(k.stores, of.Store)) && (!k.subscribed || of.Reading != byPolling) &&
				(!k.failing || of.Failing) && (!k.bucket || of.Sink == s3Sink)
			if can && !slices.Contains(s.kinds, k) {
				s.kinds = append(s.kinds, k)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !wanted[name] {
			return nil, fmt.Errorf("there is no profile or kind of fault %q; see -profile list", name)
		}
	}
	if len(s.kinds) == 0 {
		return nil, fmt.Errorf("no fault of %q is for a store of the kind %s with -reading %s", of.Profile, of.Store, of.Reading)
	}
	for _, k := range s.kinds {
		s.turn[k] = s.rand.IntN(max(1, len(k.modes)))
	}
	return s, nil
}

func (s *script) next() round {
	if len(s.left) == 0 {
		s.left = slices.Clone(s.kinds)
		s.rand.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	r := round{kind: s.left[0], pick: s.rand.Uint64(), long: s.rand.Float64(), late: s.rand.Float64()}
	s.left = s.left[1:]
	if n := len(r.kind.modes); n > 0 {
		r.mode = r.kind.modes[s.turn[r.kind]%n]
		s.turn[r.kind]++
	}
	return r
}
