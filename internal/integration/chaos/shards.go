package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/weir-go/weir/kinesistest"
)

// splitOrMerge changes the shards, and says how. It splits as long as there are not too many, whatever is wished.
func (s *stage) splitOrMerge(wish string, pick uint64) string {
	open := s.server.OpenShards(stream)
	few, many := len(open) <= max(2, s.Shards/2), len(open) >= 2*s.Shards
	if few || wish == split && !many {
		shard := open[pick%uint64(len(open))]
		s.server.Split(stream, shard)
		return "split of " + shard
	}
	i := pick % uint64(len(open)-1)
	s.server.Merge(stream, open[i], open[i+1])
	return fmt.Sprintf("merge of %s and %s", open[i], open[i+1])
}

// How Kinesis fails.
const (
	throttled = "throttled"
	failing   = "internal failures"
	lost      = "lost answers"
	torn      = "torn answers"
)

// controlKinesis has some of its calls fail, or none any more.
func (s *stage) controlKinesis(how string, some float64) {
	action := "GetRecords"
	if how == failing {
		action = ""
	}
	faults := map[string]func() kinesistest.Fault{
		throttled: func() kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException"}}
		},
		failing: func() kinesistest.Fault { return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}} },
		lost:    func() kinesistest.Fault { return kinesistest.Fault{LoseAnswer: true} },
		torn:    func() kinesistest.Fault { return kinesistest.Fault{CutAfter: 1 + rand.IntN(200)} },
	}
	fault := faults[how]
	if fault == nil {
		s.server.Control("", nil)
		s.server.Control("GetRecords", nil)
		return
	}
	s.server.Control(action, func(*kinesistest.Call) kinesistest.Fault {
		if rand.Float64() < some {
			return fault()
		}
		return kinesistest.Fault{}
	})
}
