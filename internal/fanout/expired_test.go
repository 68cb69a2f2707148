package fanout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// A subscription at an expired position begins with the oldest record. Kinesis does not report
// that, but weir does. If Kinesis refuses the position, polling applies the policy.
func TestFanOutTellsOfExpiredPositions(t *testing.T) {
	for name, test := range map[string]struct {
		refuse  bool
		policy  source.IfExpired
		part    bool   // a part of the record before the position is not handled yet
		want    string // records that are handled within two minutes
		told    bool
		refusal bool
	}{
		"not refused":                 {false, source.StayExpired, false, "3", true, false},
		"not refused, with a policy":  {false, source.LatestExpired, false, "3", true, false},
		"part of an expired record":   {false, source.StayExpired, true, "3", true, false},
		"refused, without a policy":   {true, source.StayExpired, false, "", false, false},
		"refused, on with the oldest": {true, source.OldestExpired, false, "3", true, true},
		"refused, on with the latest": {true, source.LatestExpired, false, "4", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, kinesistest.Config{RefuseTrimmed: test.refuse}, func(t *testing.T, p *fanned) {
				began := time.Now()
				_, first := p.srv.Put("s", "k", []byte("1"))
				p.srv.Put("s", "k", []byte("2"))
				time.Sleep(30 * time.Hour) // both expire, and the second was not read
				p.srv.Put("s", "k", []byte("3"))
				arrived := time.Now()
				time.Sleep(5 * time.Second)
				from, _ := shard.After(first)
				if test.part {
					from, _ = shard.Part(first, 3)
				}
				var told []source.Expiry
				p.fan.Poll.From, p.fan.Poll.IfExpired = from, test.policy
				p.fan.Poll.Listener.(*source.ListenerFuncs).OnExpired = func(e source.Expiry) { told = append(told, e) }
				go func() {
					time.Sleep(90 * time.Second)
					p.srv.Put("s", "k", []byte("4"))
				}()
				got := ""
				ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
				defer cancel()
				for ctx.Err() == nil {
					page, err := p.fan.Next(ctx)
					if err != nil {
						break
					}
					for _, r := range page.Records {
						if got == "" {
							got = string(r.Data)
						}
					}
					page.Release()
				}
				if got != test.want {
					t.Errorf("went on with %q, want %q", got, test.want)
				}
				if (len(told) == 1) != test.told || len(told) > 1 {
					t.Fatalf("told %d times: %v", len(told), told)
				}
				if !test.told {
					return
				}
				e := told[0]
				if e.At != from || errors.Is(e.Err, source.ErrNoPosition) != test.refusal {
					t.Errorf("told of %s, %v", e.At, e.Err)
				}
				if off := e.From.Sub(began); off < -3*time.Second || off > 3*time.Second {
					t.Errorf("lost from %v on, want %v", e.From, began)
				}
				if off := e.To.Sub(arrived); off < -time.Second || off > time.Minute {
					t.Errorf("lost up to %v, want %v", e.To, arrived)
				}
			})
		})
	}
}

// A record that exists when a subscription begins is not reported as expired, even if it expires
// later. This includes the record of the position, whether or not other records follow it. A
// position that is not at a record is not reported either.
func TestFanOutDoesNotReportWhatHasNotExpired(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		_, second := p.srv.Put("s", "k", []byte("2"))
		after, _ := shard.After(first)
		last, _ := shard.After(second)
		part, _ := shard.Part(first, 1)
		for _, from := range []shard.Position{after, part, shard.Oldest, shard.At(time.Now().Add(-time.Hour)), last} {
			p.fan.Close()
			synctest.Wait()
			time.Sleep(2 * time.Second)
			p.fan = p.reader()
			p.fan.Poll.From = from
			p.fan.Poll.Listener = &source.ListenerFuncs{OnExpired: func(e source.Expiry) { t.Errorf("from %s: told that %s expired", from, e.At) }}
			// This is longer than one subscription.
			for end := time.Now().Add(7 * time.Minute); time.Now().Before(end); {
				page, err := p.fan.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				page.Release()
			}
		}
		// Reading continues at a position where everything was read and has expired since.
		for end := time.Now().Add(30 * time.Hour); time.Now().Before(end); {
			page, err := p.fan.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			page.Release()
		}
		p.srv.Put("s", "k", []byte("3"))
		for got := 0; got == 0; {
			page, err := p.fan.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = len(page.Records)
			page.Release()
		}
	})
}

// An event whose only record shows that the position has not expired must not be replaced by a
// later empty event.
func TestTheRecordOfThePositionIsSeen(t *testing.T) {
	s := &subscription{wake: make(chan struct{}, 1)}
	shows := new(event)
	shows.wire.Records = make([]source.Record, 1)
	for _, ev := range []*event{shows, new(event), new(event)} {
		s.put(ev)
	}
	if len(s.queue) != 2 || s.queue[0] != shows {
		t.Errorf("%d events are queued, of which that with the record is the first: %v", len(s.queue), s.queue[0] == shows)
	}
}
