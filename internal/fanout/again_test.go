package fanout

import (
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// A subscription begins where the last event of the previous one ended, even if that event was
// empty. A shard may have no records for longer than the stream's retention, so the position of its
// last record would expire.
func TestFanOutGoesOnWhereEmptyEventsEnd(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.send()
		p.all(time.Second)
		for range 3 {
			before := p.fan.continuation
			p.follow(6 * time.Minute)
			at, err := p.fan.at()
			if err != nil {
				t.Fatal(err)
			}
			from := p.fan.Poll.From.SequenceNumber()
			if shard.CompareSequence(*at.SequenceNumber, from) <= 0 || shard.CompareSequence(*at.SequenceNumber, before) <= 0 {
				t.Errorf("after six minutes without a record the next subscription begins at %s, the last record was %s", *at.SequenceNumber, from)
			}
		}
		p.send()
		p.all(3 * time.Second)
	})
}

// Failures before the last event no longer count. Occasional failures and takeovers cause neither
// polling nor longer pauses.
func TestFanOutForgetsTroubles(t *testing.T) {
	then := func(events int, f kinesistest.SubscriptionFault) kinesistest.Fault {
		f.Events = events
		return stream(f)
	}
	ends := then(20, kinesistest.SubscriptionFault{End: true})
	for name, test := range map[string]struct {
		turns []kinesistest.Fault // faults of subscriptions, in turns
		bound time.Duration       // maximum time between two events
	}{
		"taken over every two and a half minutes": {[]kinesistest.Fault{
			then(30, kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceInUseException"}}),
		}, 13 * time.Second},
		"in use for a while": {[]kinesistest.Fault{
			ends, refusal("ResourceInUseException"), refusal("ResourceInUseException"), refusal("ResourceInUseException"),
			refusal("ResourceInUseException"), refusal("ResourceInUseException"), refusal("ResourceInUseException"),
		}, 16 * time.Second},
		"a failure": {[]kinesistest.Fault{ends, refusal("InternalFailure")}, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				calls := 0
				p.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault {
					calls++
					return test.turns[(calls-1)%len(test.turns)]
				})
				last, longest := time.Now(), time.Duration(0)
				for end := last.Add(40 * time.Minute); time.Now().Before(end); {
					if _, err := p.read(t.Context()); err != nil {
						t.Fatal(err)
					}
					longest, last = max(longest, time.Since(last)), time.Now()
				}
				t.Logf("%d calls, no event for %v", calls, longest)
				if calls < 10 || longest > test.bound || len(p.modes) > 0 {
					t.Errorf("%d calls, no event for %v, bound %v; changes %v", calls, longest, test.bound, p.modes)
				}
			})
		})
	}
}

// When a shard is polled again, polling begins at its current position.
func TestFanOutFallsBackAgain(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.faulty(-1, refusal("AccessDeniedException"))
		p.send()
		p.all(time.Second)
		p.faulty(0, kinesistest.Fault{})
		p.follow(2 * time.Minute)
		if len(p.modes) != 2 {
			t.Fatalf("the changes are %v", p.modes)
		}
		for range 3000 {
			p.send()
			p.all(3 * time.Second)
		}
		p.faulty(-1, refusal("AccessDeniedException"))
		p.fan.Stop()
		for len(p.modes) < 3 {
			if _, err := p.read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		polls := p.srv.Requests("GetRecords")
		p.send()
		p.all(3 * time.Second)
		if n := p.srv.Requests("GetRecords") - polls; n > 4 {
			t.Errorf("%d reads for one record", n)
		}
	})
}
