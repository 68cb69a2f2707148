package supervise

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

var silent, reads, inVain = Evidence{}, Evidence{Reads: true}, Evidence{InVain: true}

func TestEvidenceIsOfTheWorst(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var e Evidence
	for _, ago := range []time.Duration{time.Minute, time.Hour, 2 * time.Minute} {
		e.Add(&Shard{Reading: reading, Trying: now.Add(-ago)}, now, suspectAfter)
	}
	e.Add(&Shard{Reading: AtTip}, now, suspectAfter)
	if !e.Reads || !e.InVain || now.Sub(e.Since) != time.Hour {
		t.Errorf("%+v", e)
	}
	if d := SuspectAfter(2 * time.Minute); d != suspectAfter {
		t.Errorf("suspected after %v", d)
	}
	if d := SuspectAfter(20 * time.Second); d != 5*time.Second {
		t.Errorf("suspected after %v", d)
	}
}

func TestWhatAShardSaysAboutItsWorker(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	err := errors.New("unreachable")
	for name, c := range map[string]struct {
		v    Shard
		want Evidence
	}{
		"at the tip":                         {Shard{Reading: AtTip}, reads},
		"behind":                             {Shard{Reading: Pacing}, reads},
		"the handler is slower":              {Shard{Reading: AwaitingHandler}, reads},
		"subscribed, and events come":        {Shard{Reading: Subscribed, Trying: ago(5 * time.Second)}, reads},
		"subscribed, and nothing comes":      {Shard{Reading: Subscribed, Trying: ago(10 * time.Second)}, inVain},
		"it begins":                          {Shard{Reading: "starting"}, silent},
		"a read is under way":                {Shard{Reading: reading, Trying: ago(9 * time.Second)}, silent},
		"a read hangs":                       {Shard{Reading: reading, Trying: ago(10 * time.Second)}, inVain},
		"reads fail":                         {Shard{Reading: backingOff, Trying: ago(time.Minute), Err: err}, inVain},
		"reads failed just now":              {Shard{Reading: backingOff, Trying: ago(time.Second), Err: err}, silent},
		"everybody is throttled":             {Shard{ForAll: true, Reading: backingOff, Trying: ago(time.Hour), Err: err}, reads},
		"no memory":                          {Shard{Reading: AwaitingMemory, Trying: ago(time.Hour)}, silent},
		"a handler is busy and reads fail":   {Shard{Handling: Handling, Reading: backingOff, Trying: ago(time.Hour)}, silent},
		"a handler is busy at the tip":       {Shard{Handling: Handling, Reading: AtTip}, silent},
		"it waits after a stall":             {Shard{Handling: Blocked, Trying: ago(time.Hour)}, silent},
		"its lease was released":             {Shard{Ended: ago(time.Second), Reading: reading, Trying: ago(time.Hour)}, silent},
		"its handler was left behind":        {Shard{Left: true, Reading: AtTip}, silent},
		"it is read to its end, and waits":   {Shard{Handling: ending, Reading: AtTip}, silent},
		"throttled long ago, and now it won": {Shard{ForAll: true, Reading: reading, Trying: ago(time.Hour)}, inVain},
	} {
		var got Evidence
		if got.Add(&c.v, now, suspectAfter); got.Since.Equal(c.v.Trying) {
			got.Since = time.Time{} // the start of the failing read
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWhenAWorkerIsCutOff(t *testing.T) {
	vain, fine, none, one := inVain, reads, silent, Evidence{Reads: true, InVain: true}
	refused := errors.New("unreachable")
	for name, steps := range map[string][]struct {
		after  time.Duration // time since the previous step
		see    Evidence
		probe  bool  // a probe begins
		ends   bool  // the probe ends at once
		err    error // the error of the probe
		cutOff bool  // in the end, the worker is cut off
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
		var s Isolation
		now := time.Unix(1_000_000, 0)
		for i, step := range steps {
			now = now.Add(step.after)
			if step.see.InVain {
				step.see.Since = now.Add(-time.Minute)
			}
			if probe := s.Observe(now, step.see, time.Second); probe != step.probe {
				t.Errorf("%s, step %d: a probe is begun: %t", name, i, probe)
			}
			if step.ends {
				s.Probed(now, step.err)
			}
			trouble, some := s.Trouble(now)
			if w := (lease.Worker{Troubles: []lease.Trouble{trouble}}); some != step.cutOff || w.CutOff() != step.cutOff {
				t.Errorf("%s, step %d: %t, %+v", name, i, some, trouble)
			}
			if some && (trouble.Why != refused.Error() || trouble.For < time.Minute) {
				t.Errorf("%s, step %d: %+v", name, i, trouble)
			}
		}
	}
}
