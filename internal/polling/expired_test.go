package polling

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// An expired position is reported, unless the service refuses it and the policy is to stay.
func TestExpiredPositions(t *testing.T) {
	for name, test := range map[string]struct {
		refuse  bool
		policy  source.IfExpired
		part    bool   // a part of the record before the position is not handled yet
		want    string // records that are handled within a minute
		told    bool
		refusal bool
	}{
		"refused, without a policy":                 {true, source.StayExpired, false, "", false, false},
		"refused, on with the oldest":               {true, source.OldestExpired, false, "3", true, true},
		"refused, on with the latest":               {true, source.LatestExpired, false, "4", true, true},
		"part of a record, refused, oldest":         {true, source.OldestExpired, true, "3", true, true},
		"not refused":                               {false, source.StayExpired, false, "3", true, false},
		"not refused, whatever the policy":          {false, source.LatestExpired, false, "3", true, false},
		"part of an expired record":                 {false, source.StayExpired, true, "3", true, false},
		"part of an expired record, on with oldest": {false, source.OldestExpired, true, "3", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, kinesistest.Config{RefuseTrimmed: test.refuse}, func(p *polled) {
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
				p.poll.From, p.poll.IfExpired = from, test.policy
				p.poll.Listener.(*source.ListenerFuncs).OnExpired = func(e source.Expiry) { told = append(told, e) }
				go func() {
					time.Sleep(30 * time.Second)
					p.srv.Put("s", "k", []byte("4"))
				}()
				got := ""
				ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
				defer cancel()
				for got == "" {
					page, err := p.poll.Next(ctx)
					if err != nil {
						break
					}
					for _, r := range page.Records[:min(1, len(page.Records))] {
						got = string(r.Data)
					}
				}
				<-ctx.Done()
				if got != test.want {
					t.Errorf("went on with %q, want %q", got, test.want)
				}
				if (len(told) == 1) != test.told || len(told) > 1 {
					t.Fatalf("told %d times: %v", len(told), told)
				}
				if !test.told {
					if p.poll.From != from || len(p.fails) < 3 || !errors.Is(p.fails[len(p.fails)-1], source.ErrNoPosition) {
						t.Errorf("at %s, reported: %v", p.poll.From, p.fails)
					}
					return
				}
				e := told[0]
				if e.At != from || errors.Is(e.Err, source.ErrNoPosition) != test.refusal {
					t.Errorf("told of %s, %v", e.At, e.Err)
				}
				if off := e.From.Sub(began); off < -3*time.Second || off > 3*time.Second {
					t.Errorf("lost from %v on, want %v", e.From, began)
				}
				if off := e.To.Sub(arrived); off < -time.Second || off > 15*time.Second {
					t.Errorf("lost up to %v, want %v", e.To, arrived)
				}
				if test.want == "3" && e.Next.Kind() != shard.Sequence || test.want == "4" && e.Next.Kind() != shard.Time {
					t.Errorf("goes on at %s", e.Next)
				}
			})
		})
	}
}

// A checkpoint whose record still exists is not reported. A position that is not at a record is not
// reported either.
func TestWhatHasNotExpiredIsNotReported(t *testing.T) {
	bubble(t, kinesistest.Config{RefuseTrimmed: true}, func(p *polled) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		p.srv.Put("s", "k", []byte("2"))
		after, _ := shard.After(first)
		part, _ := shard.Part(first, 1)
		for _, test := range []struct {
			from shard.Position
			want string
		}{{after, "2"}, {part, "1 2"}, {shard.Oldest, "1 2"}, {shard.At(time.Now().Add(-time.Hour)), "1 2"}} {
			p.poll = &Poll{Setup: p.poll.Setup, Shard: p.shard, From: test.from, Limit: 100}
			p.poll.Listener = &source.ListenerFuncs{OnExpired: func(e source.Expiry) { t.Errorf("from %s: told that %s expired", test.from, e.At) }}
			p.want(test.want)
			time.Sleep(2 * time.Second)
		}
		// The record expires while it is the last record of a quiet shard. Nothing is reported when
		// reading continues.
		all := p.srv.Records("s")
		p.poll.From, _ = shard.After(all[len(all)-1].SequenceNumber)
		p.poll.begun, p.poll.iterator = false, ""
		if _, err := p.poll.Next(p.t.Context()); err != nil {
			t.Fatal(err)
		}
		p.poll.Idle = time.Minute
		for began, put := time.Now(), false; time.Since(began) < 31*time.Hour; {
			page, err := p.poll.Next(p.t.Context())
			if err != nil || len(page.Records) > 0 && !put {
				t.Fatalf("%d records, %v", len(page.Records), err)
			}
			if !put && time.Since(began) > 30*time.Hour {
				p.srv.Put("s", "k", []byte("3"))
				put = true
			}
		}
		if got, _ := shard.After(p.srv.Records("s")[0].SequenceNumber); p.poll.From != got {
			t.Errorf("read up to %s, want %s", p.poll.From, got)
		}
	})
}

func TestArrivalOf(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		time.Sleep(1000 * time.Hour)
		_, seq := p.srv.Put("s", "k", nil)
		if off := time.Since(arrivalOf(seq)); off < -2*time.Second || off > 2*time.Second {
			t.Errorf("off by %v", off)
		}
	})
	for _, seq := range []string{"", "17", "no number", "99999999999999999999999999999999999999999999999999999999"} {
		if got := arrivalOf(seq); !got.IsZero() {
			t.Errorf("%q arrived at %v", seq, got)
		}
	}
}
