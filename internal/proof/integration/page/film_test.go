package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// film contains the answers of the page at one moment of virtual time. A browser, which runs in
// real time, can then show these answers. So states that take minutes are available immediately and
// are reproducible.
type film map[string]*httptest.ResponseRecorder

// take requests a view and its dynamic part from the page.
func (f film) take(t *testing.T, page http.Handler, views ...string) {
	t.Helper()
	for _, view := range append(views, "page.css", "page.js") {
		part := view + "?part=1"
		if strings.Contains(view, "?") {
			part = view + "&part=1"
		}
		for _, target := range []string{view, part} {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, prefix+"/"+target, nil))
			f[prefix+"/"+target] = w
		}
	}
}

func (f film) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	taken := f[r.URL.RequestURI()]
	if taken == nil {
		http.Error(w, "that was not taken", http.StatusNotFound)
		return
	}
	for name, values := range taken.Header() {
		w.Header()[name] = slices.Clone(values)
	}
	w.WriteHeader(taken.Code)
	_, _ = w.Write(taken.Body.Bytes()) // the client may have disconnected
}

// stage is a store and a stream in virtual time, which the test fills itself.
type stage struct {
	t     *testing.T
	store *memstore.Store
	began time.Time
	lags  map[lease.Key]func(age time.Duration) dashboard.Lag // lag of each shard as a function of the time so far
	// beats contains the heartbeats of the live sessions, by application and session.
	beats map[string]lease.Report
}

func newStage(t *testing.T) *stage {
	time.Sleep(time.Until(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	return &stage{t: t, store: memstore.New(), began: time.Now(), lags: map[lease.Key]func(time.Duration) dashboard.Lag{}, beats: map[string]lease.Report{}}
}

func key(id int) lease.Key {
	return lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", id)}
}

// position returns the position of a record that arrived some time after the stage was created. The
// shard of the record was opened an hour before the stage was created. Sequence numbers contain
// both times.
func (s *stage) position(after time.Duration) shard.Position {
	s.t.Helper()
	arrived := s.began.Add(after).Unix()
	digits := fmt.Sprintf("2%09x0%016x00%09x%08x2", s.began.Add(-time.Hour).Unix(), arrived, arrived, 0)
	p, err := shard.After(decimal(digits))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *stage) apply(app string, actions ...lease.Action) {
	s.t.Helper()
	done, err := s.store.Apply(s.t.Context(), app, actions)
	if err != nil || slices.Contains(done, false) {
		s.t.Fatalf("%v: %v, %v", actions, done, err)
	}
}

// lease creates the lease of one of sixteen shards. Parents and owner are optional.
func (s *stage) lease(app string, id int, session string, at shard.Position, parents ...int) {
	s.t.Helper()
	slot := uint64(id % 16)
	l := lease.Lease{Key: key(id), Epoch: 1, Position: at, Range: shard.HashRange{
		Start: shard.HashKey{Hi: slot << 60}, End: shard.HashKey{Hi: slot<<60 | (1<<60 - 1), Lo: ^uint64(0)},
	}}
	for _, p := range parents {
		l.Parents = append(l.Parents, key(p).Shard)
	}
	s.apply(app, lease.Action{Kind: lease.Create, Lease: l})
	if session != "" {
		s.apply(app, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: 1, Session: session})
	}
}

// worker makes a session send heartbeats from now on, until the test removes it from s.beats.
func (s *stage) worker(app string, r lease.Report) {
	s.t.Helper()
	r.First = true
	s.beats[app+" "+r.Session] = r
	s.beat()
}

func (s *stage) beat() {
	s.t.Helper()
	for of, r := range s.beats {
		app, _, _ := strings.Cut(of, " ")
		for i := range r.Troubles {
			r.Troubles[i].For += time.Second
		}
		if _, err := s.store.Heartbeat(s.t.Context(), app, r); err != nil {
			s.t.Fatal(err)
		}
		r.First, r.Progress = false, nil
		s.beats[of] = r
	}
}

// advance moves the checkpoint of an owned shard. The higher the number of a shard, the more
// traffic it has.
func (s *stage) advance(app string, id int, session string, epoch uint64, to shard.Position) {
	s.t.Helper()
	r := s.beats[app+" "+session]
	r.Progress = append(r.Progress, lease.Progress{Key: key(id), Epoch: epoch, Position: to, Load: lease.LoadOf(float64(int(1) << (12 + id)))})
	s.beats[app+" "+session] = r
}

// pass lets time pass. Every second it calls the function each, and all sessions send heartbeats.
// Every five seconds it requests the page.
func (s *stage) pass(d time.Duration, page http.Handler, each func(age time.Duration), views ...string) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Second)
		each(time.Since(s.began))
		s.beat()
		if time.Now().Unix()%5 == 0 {
			film{}.take(s.t, page, views...)
		}
	}
}

func (s *stage) askLags(_ context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
	lags := map[lease.Key]dashboard.Lag{}
	for _, l := range leases {
		if of := s.lags[l.Key]; of != nil {
			lags[l.Key] = of(time.Since(s.began))
		}
	}
	return lags, nil
}

// ListShards returns no shards, so the page uses only the leases.
func (s *stage) ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error) {
	return &kinesis.ListShardsOutput{Shards: []types.Shard{}}, nil
}

// DescribeStreamSummary returns a retention of one day.
func (s *stage) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	return &kinesis.DescribeStreamSummaryOutput{StreamDescriptionSummary: &types.StreamDescriptionSummary{RetentionPeriodHours: aws.Int32(24)}}, nil
}
