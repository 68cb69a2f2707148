package group

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// until waits in bubble time until a condition is true. It fails after patience.
func (f *fleet) until(what string, patience time.Duration, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			f.t.Fatalf("after %v still not: %s; who has what: %v", patience, what, f.owners())
		}
		time.Sleep(max(10*time.Millisecond, patience/1000))
	}
}

func (f *fleet) view() lease.View {
	v, err := f.store.View(f.t.Context(), "app", "")
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *fleet) lease(id string) lease.Lease {
	for _, l := range f.view().Leases {
		if l.Shard == id {
			return l
		}
	}
	return lease.Lease{}
}

func (f *fleet) session(name string) string {
	for _, w := range f.view().Workers {
		if w.Name == name {
			return w.Session
		}
	}
	return ""
}

func (f *fleet) apply(a lease.Action) {
	f.t.Helper()
	if done, err := f.store.Apply(f.t.Context(), "app", []lease.Action{a}); err != nil || !done[0] {
		f.t.Fatalf("%v: %v, %v", a, done, err)
	}
}

// two starts workers a and b, which share the shards. Worker a leads.
func (f *fleet) two() (a, b *member) {
	n := len(f.shards)
	a = f.join("a")
	f.until("a has all", 10*time.Second, func() bool { return f.owners()["a"] == n })
	b = f.join("b")
	f.until("both have their share", 20*time.Second, func() bool { return f.owners()["b"] == n/2 && f.owners()["a"] == n-n/2 })
	return a, b
}

func TestADrainedWorkerIsEmptiedAndGoesOnRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8)
		f.two()
		f.apply(lease.Action{Kind: lease.Drain, Session: f.session("b"), On: true})
		f.until("b is empty", 10*time.Second, func() bool { return f.owners()["a"] == 8 })
		time.Sleep(time.Minute)
		if f.owners()["a"] != 8 || f.session("b") == "" {
			t.Errorf("later: %v", f.owners())
		}
		f.apply(lease.Action{Kind: lease.Drain, Session: f.session("b")})
		f.until("b has its share again", 10*time.Second, func() bool { return f.owners()["b"] == 4 })
		f.end()
		if d := f.duplicates(); d != 0 {
			t.Errorf("%d records were handled twice", d)
		}
	})
}

func TestAPausedStreamIsReadByNobodyAndThenGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8)
		f.two()
		f.apply(lease.Action{Kind: lease.Pause, Stream: "s", On: true})
		f.until("nobody has any", 10*time.Second, func() bool { return f.owners()[""] == 8 })
		f.mu.Lock()
		read := len(f.log)
		f.mu.Unlock()
		time.Sleep(time.Minute)
		f.mu.Lock()
		if len(f.log) != read {
			t.Errorf("%d records were read while the stream was paused", len(f.log)-read)
		}
		f.mu.Unlock()
		f.apply(lease.Action{Kind: lease.Pause, Stream: "s"})
		f.until("all are read again", 3*time.Second, func() bool { return f.owners()["a"] == 4 && f.owners()["b"] == 4 })
		time.Sleep(time.Second)
		f.end()
		if d := f.duplicates(); d != 0 {
			t.Errorf("%d records were handled twice", d)
		}
	})
}

func TestAShardThatStallsGoesToAnotherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8)
		f.two()
		l := f.lease("shard-003")
		who := "a"
		if l.Owner == f.session("b") {
			who = "b"
		}
		f.mu.Lock()
		f.stalls = map[string]string{"shard-003": who}
		f.trouble = []lease.Trouble{{Key: l.Key, State: "stalled", For: 90 * time.Second, Why: "the service does not answer"}}
		f.mu.Unlock()
		f.until("another has it", 10*time.Second, func() bool {
			now := f.lease("shard-003")
			return now.Owner != "" && now.Owner != l.Owner
		})
		f.until("shares are even", 10*time.Second, func() bool { return f.owners()["a"] == 4 && f.owners()["b"] == 4 })
		for _, w := range f.view().Workers {
			if !reflect.DeepEqual(w.Troubles, f.trouble) {
				t.Errorf("troubles of %s: %+v", w.Name, w.Troubles)
			}
		}
		f.end()
		if f.reasons["stalled"] != 1 {
			t.Errorf("the terms ended because %v", f.reasons)
		}
	})
}

func TestBusyShardsAreSharedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8)
		f.two()
		f.mu.Lock()
		f.rates = map[string]float64{}
		for _, l := range f.view().Leases {
			if l.Owner == f.session("a") {
				f.rates[l.Shard] = 1 << 20
			}
		}
		f.mu.Unlock()
		busy := func() (n int) {
			for _, l := range f.view().Leases {
				if l.Owner == f.session("a") && l.Load > 1 {
					n++
				}
			}
			return n
		}
		f.until("the leader has shared them", 10*time.Minute, func() bool { return busy() == 2 && f.owners()["a"] == 4 })
		epochs := func() (sum uint64) {
			for _, l := range f.view().Leases {
				sum += l.Epoch
			}
			return sum
		}
		before := epochs()
		time.Sleep(2 * time.Minute)
		if after := epochs(); after != before {
			t.Errorf("%d more moves", after-before)
		}
		f.end()
	})
}

// A leader that can no longer read the view, but whose session is alive, resigns and keeps its
// leases.
func TestALeaderThatCannotLookLeavesItToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8)
		a, _ := f.two()
		if f.view().Leader.Session != f.session("a") {
			t.Fatal("a does not lead")
		}
		a.link.mu.Lock()
		a.link.dim = true
		a.link.mu.Unlock()
		began := time.Now()
		f.until("b leads", 9*time.Second, func() bool { return f.view().Leader.Session == f.session("b") })
		t.Logf("b leads after %v", time.Since(began))
		time.Sleep(time.Minute)
		if f.view().Leader.Session != f.session("b") || f.owners()["a"] != 4 {
			t.Errorf("later %v leads, %v", f.view().Leader, f.owners())
		}
		f.end()
		if d := f.duplicates(); d != 0 || f.reasons["lost"] != 0 {
			t.Errorf("%d records were handled twice, terms ended because %v", d, f.reasons)
		}
	})
}

func TestAStreamThatWasMadeAnewIsReadFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		f.born = 1000
		f.two()
		time.Sleep(5 * time.Second)
		before := f.lease("shard-001")
		if before.Born != 1000 {
			t.Fatalf("lease %s is born %d", before, before.Born)
		}
		f.mu.Lock()
		f.born = 2000
		f.shards = []shard.Shard{{ID: "shard-001"}, {ID: "shard-002", Parents: []string{"gone"}}, {ID: "shard-009"}}
		f.mu.Unlock()
		f.until("the old leases are gone", 3*time.Minute, func() bool {
			v := f.view()
			return len(v.Leases) == 3 && !slices.ContainsFunc(v.Leases, func(l lease.Lease) bool { return l.Born != 2000 || l.Owner == "" })
		})
		after := f.lease("shard-001")
		if after.Epoch <= before.Epoch || !reflect.DeepEqual(f.lease("shard-002").Parents, []string{"gone"}) {
			t.Errorf("before %s, after %s; %s", before, after, f.lease("shard-002"))
		}
		f.mu.Lock()
		first := slices.IndexFunc(f.log, func(s step) bool { return s.shard == "shard-001" && s.epoch > before.Epoch })
		if first < 0 || f.log[first].n != 1 {
			t.Errorf("read on at %+v", f.log[max(first, 0)])
		}
		f.log = nil // the rest of the test judges the new stream
		f.mu.Unlock()
		for _, m := range f.workers {
			m.stop()
			if err := <-m.done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRenew(t *testing.T) {
	k := lease.Key{Stream: "s", Shard: "1"}
	listing := Listing{Born: 9, Shards: []shard.Shard{{ID: "1", Parents: []string{"0"}, Range: shard.HashRange{End: shard.MaxHashKey}}}}
	anew := lease.Action{Kind: lease.Replace, Key: k, Epoch: 4, Lease: lease.Lease{
		Key: k, Parents: []string{"0"}, Range: shard.HashRange{End: shard.MaxHashKey}, Epoch: 5, Position: shard.Oldest, Born: 9}}
	workers := []lease.Worker{{Session: "a"}, {Session: "dead", Ended: true}}
	revoke := []lease.Action{{Kind: lease.Revoke, Key: k, Epoch: 4}}
	for _, c := range []struct {
		name string
		l    lease.Lease
		ripe uint64
		want []lease.Action
		anew bool
	}{
		{"of this birth", lease.Lease{Born: 9, Owner: "a"}, 0, nil, false},
		{"of unknown birth", lease.Lease{Owner: "a"}, 0, nil, false},
		{"of a stream that was created after the listing", lease.Lease{Born: 10, Owner: "a"}, 0, nil, false},
		{"held", lease.Lease{Born: 8, Owner: "a"}, 0, revoke, true},
		{"held by a dead session", lease.Lease{Born: 8, Owner: "dead"}, 0, revoke, true},
		{"revoked", lease.Lease{Born: 8, Revoked: "a"}, 3, nil, true},
		{"revoked for long enough", lease.Lease{Born: 8, Revoked: "a"}, 4, []lease.Action{anew}, true},
		{"revoked from a dead session", lease.Lease{Born: 8, Revoked: "dead"}, 0, []lease.Action{anew}, true},
		{"revoked from one that is gone", lease.Lease{Born: 8, Revoked: "gone"}, 0, []lease.Action{anew}, true},
		{"free", lease.Lease{Born: 8}, 0, []lease.Action{anew}, true},
		{"finished", lease.Lease{Born: 8, Position: shard.End}, 0, []lease.Action{anew}, true},
	} {
		c.l.Key, c.l.Epoch = k, 4
		got, anew := Renew(listing, []lease.Lease{c.l}, workers, map[lease.Key]uint64{k: c.ripe})
		if !reflect.DeepEqual(got, c.want) || anew != c.anew {
			t.Errorf("%s: %v, %t, want %v", c.name, got, anew, c.want)
		}
	}
	l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "other"}, Epoch: 4, Born: 8}
	if got, _ := Renew(listing, []lease.Lease{l}, nil, nil); len(got) != 1 || got[0].Kind != lease.Delete {
		t.Errorf("a shard that the new stream does not have: %v", got)
	}
	if got, anew := Renew(Listing{}, []lease.Lease{l}, nil, nil); got != nil || anew {
		t.Errorf("a listing of unknown birth: %v", got)
	}
}

// Leases that were created before the stream's creation time was known get it later. Their owners
// do not change.
func TestLeasesLearnWhenTheirStreamWasCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		f.two()
		before := f.view().Leases
		f.mu.Lock()
		f.born = 1000
		f.mu.Unlock()
		f.until("all leases know it", 3*time.Minute, func() bool {
			return !slices.ContainsFunc(f.view().Leases, func(l lease.Lease) bool { return l.Born != 1000 })
		})
		for i, l := range f.view().Leases {
			if l.Epoch != before[i].Epoch || l.Owner != before[i].Owner {
				t.Errorf("%s has become %s", before[i], l)
			}
		}
		f.mu.Lock()
		f.born = 2000
		f.mu.Unlock()
		f.until("the stream was made anew", 3*time.Minute, func() bool {
			return !slices.ContainsFunc(f.view().Leases, func(l lease.Lease) bool { return l.Born != 2000 || l.Owner == "" })
		})
		f.mu.Lock()
		f.log = nil // of the old stream
		f.mu.Unlock()
		for _, m := range f.workers {
			m.stop()
			if err := <-m.done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestBirths(t *testing.T) {
	var known, unknown []lease.Lease
	for i := range 300 {
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: fmt.Sprint(i)}, Epoch: uint64(i)}
		unknown = append(unknown, l)
		l.Born = 8
		known = append(known, l)
	}
	if got := Births(Listing{Born: 9}, known); len(got) != 0 {
		t.Errorf("what is known is filled in: %v", got)
	}
	if got := Births(Listing{}, unknown); len(got) != 0 {
		t.Errorf("what is not known is filled in: %v", got)
	}
	got := Births(Listing{Born: 9}, unknown)
	if want := (lease.Action{Kind: lease.Birth, Key: unknown[7].Key, Epoch: 7, Born: 9}); len(got) != mostBirths || !reflect.DeepEqual(got[7], want) {
		t.Errorf("%d are filled in, the eighth by %v", len(got), got[7])
	}
}

// Leases of a stream that no worker reads are not deleted, replaced or assigned. The same is true
// for finished leases.
func TestStreamsOfOthersStayAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.born = 2000
		other := func(id string) lease.Lease {
			return lease.Lease{Key: lease.Key{Stream: "elsewhere", Shard: id}, Epoch: 3, Position: shard.End, Last: "gone", Born: 1000}
		}
		f.apply(lease.Action{Kind: lease.Create, Lease: other("finished")})
		open := other("open")
		open.Position = shard.Oldest
		f.apply(lease.Action{Kind: lease.Create, Lease: open})
		f.join("a")
		f.until("a has its own", 10*time.Second, func() bool { return f.owners()["a"] == 2 })
		time.Sleep(10 * time.Minute) // ten listings
		if l := f.lease("finished"); l.Epoch != 3 || !l.Finished() {
			t.Errorf("what was finished is %+v", l)
		}
		if l := f.lease("open"); l.Epoch != 3 || l.Owner != "" || l.Born != 1000 {
			t.Errorf("what was open is %+v", l)
		}
		f.end()
	})
}

func TestRatesAreReportedByTheWayOrSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newValidity(5 * time.Second)
		held := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Position: shard.Oldest}
		held.Rate, held.Load = lease.Measured(1000)
		term := newTerm(held, v, func() {})
		if term.StoredRate() != 1000 {
			t.Errorf("the term begins with %v bytes per second", term.StoredRate())
		}
		seq := uint64(0)
		report := func(move bool) int {
			if move {
				seq++
				p, err := shard.After(string(rune('0' + seq)))
				if err != nil {
					t.Fatal(err)
				}
				term.Advance(p)
			}
			p, some := term.progress()
			if some != (p.Load != 0 || !p.Position.IsZero()) {
				t.Errorf("some is %t for %+v", some, p)
			}
			term.settle(p, true)
			if p.Load == 0 {
				return none
			}
			if rate, load := lease.Measured(float64(p.Rate)); rate != p.Rate || load != p.Load {
				t.Errorf("%+v has the rate of another class", p)
			}
			return int(p.Rate)
		}
		for _, c := range []struct {
			after time.Duration
			rate  float64
			move  bool
			want  int
		}{
			{0, none, true, none},            // unknown
			{0, 1000, true, none},            // unchanged
			{0, 1010, true, 1010},            // reported along with a position
			{time.Second, 30e3, false, none}, // too soon for its own report
			{44 * time.Second, 30e3, false, 30e3},
			{time.Minute, 35e3, false, none}, // the change is too small for now
			{0, 35e3, true, 35e3},
			{time.Minute, 15e3, false, 15e3},
			{rateAge - time.Second, 15.1e3, false, none},
			{time.Second, 15.1e3, false, 15.1e3}, // any change is reported in the end
			{time.Minute, 0, false, 0},
			{rateAge, 0.2, false, none}, // idle still
		} {
			time.Sleep(c.after)
			term.SetRate(c.rate)
			if got := report(c.move); got != c.want {
				t.Errorf("%+v: reported %d", c, got)
			}
		}
	})
}

// Reports without a position cost a request with DynamoDB. The class of the load alone, reported
// after a change by two classes and at most every 30 s, would take 20 of them here.
func TestADecayingRateIsReportedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Position: shard.Oldest}
		held.Rate, held.Load = lease.Measured(1 << 20)
		term := newTerm(held, newValidity(5*time.Second), func() {})
		reports, age := 0, 0
		for second := range 30 * 60 {
			rate := (1 << 20) * math.Exp(-float64(second)/60)
			term.SetRate(rate)
			p, some := term.progress()
			term.settle(p, true)
			if some {
				reports++
			}
			stored := term.StoredRate()
			if stored > 2*rate+2 {
				age++ // seconds in which the stored rate is more than twice the rate
			}
			time.Sleep(time.Second)
		}
		if got := term.StoredRate(); reports > 20 || got != 0 || age > 20*5 {
			t.Errorf("%d reports, %d s out of date, %v at last", reports, age, got)
		}
		t.Logf("%d reports, %d s out of date", reports, age)
	})
}

// none is an unknown throughput, and a throughput that was not reported.
const none = -1

// Shards that only the recreated stream has are also read from their beginning, regardless of the
// application's start.
func TestNoShardOfANewStreamBeginsAtTheStart(t *testing.T) {
	s := newListings([]string{"s"})
	s.streams["s"].fresh = true
	s.streams["s"].latest = &Listing{Born: 9, Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}, Begin: map[string]shard.Position{"1": shard.Latest, "2": shard.Latest}}
	old := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 4, Owner: "a", Born: 8}
	got := s.actions(lease.View{Leases: []lease.Lease{old}, Workers: []lease.Worker{{Session: "a"}}}, lease.Facts{},
		Config{Host: new(HostFuncs), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	want := []lease.Action{
		{Kind: lease.Revoke, Key: old.Key, Epoch: 4},
		{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "s", Shard: "2"}, Epoch: 1, Position: shard.Oldest, Born: 9}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
