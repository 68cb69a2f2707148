package weir

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

func TestWhatAShardSaysAboutItsWorker(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	err := errors.New("unreachable")
	for name, c := range map[string]struct {
		v    vitals
		want sign
	}{
		"at the tip":                         {vitals{reading: ShardAtTip}, reads},
		"behind":                             {vitals{reading: ShardPacing}, reads},
		"the handler is slower":              {vitals{reading: ShardAwaitingHandler}, reads},
		"subscribed, and events come":        {vitals{reading: ShardSubscribed, trying: ago(5 * time.Second)}, reads},
		"subscribed, and nothing comes":      {vitals{reading: ShardSubscribed, trying: ago(10 * time.Second)}, inVain},
		"it begins":                          {vitals{reading: ShardStarting}, silent},
		"a read is under way":                {vitals{reading: ShardReading, trying: ago(9 * time.Second)}, silent},
		"a read hangs":                       {vitals{reading: ShardReading, trying: ago(10 * time.Second)}, inVain},
		"reads fail":                         {vitals{reading: ShardBackingOff, trying: ago(time.Minute), err: err}, inVain},
		"reads failed just now":              {vitals{reading: ShardBackingOff, trying: ago(time.Second), err: err}, silent},
		"everybody is throttled":             {vitals{watched: watched{same: true}, reading: ShardBackingOff, trying: ago(time.Hour), err: err}, reads},
		"no memory":                          {vitals{reading: ShardAwaitingMemory, trying: ago(time.Hour)}, silent},
		"a handler is busy and reads fail":   {vitals{state: ShardHandling, reading: ShardBackingOff, trying: ago(time.Hour)}, silent},
		"a handler is busy at the tip":       {vitals{state: ShardHandling, reading: ShardAtTip}, silent},
		"it waits after a stall":             {vitals{state: ShardBlocked, trying: ago(time.Hour)}, silent},
		"its lease was given up":             {vitals{watched: watched{ended: ago(time.Second)}, reading: ShardReading, trying: ago(time.Hour)}, silent},
		"its handler was left behind":        {vitals{watched: watched{left: make(chan struct{})}, reading: ShardAtTip}, silent},
		"it is read to its end, and waits":   {vitals{state: ShardEnding, reading: ShardAtTip}, silent},
		"throttled long ago, and now it won": {vitals{watched: watched{same: true}, reading: ShardReading, trying: ago(time.Hour)}, inVain},
	} {
		if got := c.v.sign(now, suspectAfter); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWhenAWorkerIsCutOff(t *testing.T) {
	type signs = [inVain + 1]bool
	vain, fine, none, one := signs{inVain: true}, signs{reads: true}, signs{silent: true}, signs{reads: true, inVain: true}
	refused := errors.New("unreachable")
	for name, steps := range map[string][]struct {
		after  time.Duration // since the step before
		see    signs
		probe  bool  // is one begun
		ends   bool  // does it end at once
		err    error // with what
		cutOff bool  // in the end
	}{
		"all is well":      {{0, fine, false, false, nil, false}, {time.Hour, none, false, false, nil, false}},
		"one shard is bad": {{0, one, false, false, nil, false}, {time.Hour, one, false, false, nil, false}},
		"the shard is at fault": {
			{0, vain, true, true, nil, false}, {9 * time.Second, vain, false, false, nil, false}, {time.Second, vain, true, true, nil, false},
		},
		"no shard is left, but it is a shard's fault": {
			{0, vain, true, true, nil, false}, {time.Second, none, false, false, nil, false}, {time.Minute, none, false, false, nil, false},
		},
		"the worker is at fault": {
			{0, vain, true, true, refused, true}, {time.Second, vain, false, false, nil, true}, {time.Second, vain, true, true, refused, true},
		},
		"a probe takes its time": {
			{0, vain, true, false, nil, false}, {time.Second, vain, false, false, nil, false}, {4 * time.Second, vain, false, true, refused, true},
		},
		"it holds nothing any more": {
			{0, vain, true, true, refused, true}, {time.Minute, none, true, true, refused, true}, {time.Minute, none, true, true, nil, false},
			{time.Minute, none, false, false, nil, false},
		},
		"a read succeeds": {
			{0, vain, true, true, refused, true}, {time.Second, one, false, false, nil, false}, {time.Second, none, false, false, nil, false},
		},
		"a read succeeds before the probe fails": {
			{0, vain, true, false, nil, false}, {time.Second, fine, false, true, refused, false}, {time.Second, none, false, false, nil, false},
			{time.Second, vain, false, false, nil, false}, {8 * time.Second, vain, true, true, refused, true},
		},
		"it comes back": {
			{0, vain, true, true, refused, true}, {time.Minute, fine, false, false, nil, false}, {0, vain, true, true, refused, true},
		},
	} {
		var s isolation
		now := time.Unix(1_000_000, 0)
		for i, step := range steps {
			now = now.Add(step.after)
			if probe := s.see(now, step.see, now.Add(-time.Minute), time.Second); probe != step.probe {
				t.Errorf("%s, step %d: a probe is begun: %t", name, i, probe)
			}
			if step.ends {
				s.probedAt(now, step.err)
			}
			trouble, some := s.trouble(now)
			if w := (lease.Worker{Troubles: []lease.Trouble{trouble}}); some != step.cutOff || w.CutOff() != step.cutOff {
				t.Errorf("%s, step %d: %t, %+v", name, i, some, trouble)
			}
			if some && (trouble.Why != refused.Error() || trouble.For < time.Minute) {
				t.Errorf("%s, step %d: %+v", name, i, trouble)
			}
		}
	}
}
