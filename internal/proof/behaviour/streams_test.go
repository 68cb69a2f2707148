package behaviour

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// names is a DiscoverStreams whose result can change.
type names struct {
	mu    sync.Mutex
	names []string
	err   error
}

func (n *names) set(err error, names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names, n.err = names, err
}

func (n *names) ask(context.Context) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names, n.err
}

// seen counts the handled records by stream.
type seen struct {
	mu   sync.Mutex
	data map[string]int
}

func (s *seen) handle(_ context.Context, b *weir.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range b.Records {
		s.data[b.Stream+" "+string(r.Data)]++
	}
	return nil
}

func (s *seen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.data)), ", ")
}

func owned(t *testing.T, store lease.Store) (streams []string) {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range v.Leases {
		if l.Owner != "" {
			streams = append(streams, l.Stream)
		}
	}
	slices.Sort(streams)
	return slices.Compact(streams)
}

func TestStreamsComeAndGoAtRunTime(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		for _, s := range []string{"a", "b", "c"} {
			srv.CreateStream(s, 2)
		}
		var n names
		n.set(errors.New("the registry is down"))
		store, s := memstore.New(), &seen{data: map[string]int{}}
		var stops []func() error
		for range 2 {
			stops = append(stops, start(t, srv.Client(), store, weir.Options{Streams: []string{"a"}, DiscoverStreams: n.ask}, s.handle))
		}
		time.Sleep(time.Minute)
		if streams := owned(t, store); len(streams) > 0 {
			t.Errorf("%v is read before it is known what is to be read", streams)
		}
		n.set(nil, "b", "c", "a")
		until(t, "all are read", 2*time.Minute, func() bool { return len(owned(t, store)) == 3 })
		srv.Put("b", "k", []byte("1"))
		until(t, "b is handled", 10*time.Second, func() bool { return s.all() == "b 1" })

		n.set(nil, "c")
		until(t, "b is left", 2*time.Minute, func() bool { return slices.Equal(owned(t, store), []string{"a", "c"}) })
		srv.Put("b", "k", []byte("2"))
		for _, answer := range []func(){
			func() { n.set(errors.New("down"), "b") },
			func() { n.set(nil, "c", "b\x00") },
			func() { n.set(nil, "c", "arn:aws:kinesis:nowhere-1:123456789012:stream/a") },
		} {
			answer()
			time.Sleep(5 * time.Minute)
			if streams := owned(t, store); !slices.Equal(streams, []string{"a", "c"}) {
				t.Errorf("%v are read after an answer that was none", streams)
			}
		}
		if s.all() != "b 1" {
			t.Errorf("handled %s", s.all())
		}
		n.set(nil, "b", "c", "not-there")
		until(t, "b is back", 2*time.Minute, func() bool { return s.all() == "b 1, b 2" })
		if s.data["b 1"] != 1 {
			t.Errorf("b 1 was handled %d times: its progress was lost", s.data["b 1"])
		}
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAStreamThatIsMadeAnewIsReadFromItsBeginning(t *testing.T) {
	for name, away := range map[string]time.Duration{"at once": 0, "later": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				store, s := memstore.New(), &seen{data: map[string]int{}}
				var log lines
				stop := start(t, srv.Client(), store, weir.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, s.handle)
				srv.Put("s", "k", []byte("old"))
				until(t, "it is read", 10*time.Second, func() bool { return s.all() == "s old" })
				time.Sleep(5 * time.Minute)
				asked := srv.Requests("DescribeStreamSummary")
				if asked != 2 { // before the first listing, and after the second
					t.Errorf("asked %d times", asked)
				}
				srv.DeleteStream("s")
				time.Sleep(away)
				srv.CreateStream("s", 2)
				srv.Put("s", "k", []byte("new"))
				until(t, "the new one is read", 3*time.Minute, func() bool { return s.all() == "s new, s old" })
				if n := log.count("created again; its progress is discarded"); n != 1 {
					t.Errorf("it was said %d times", n)
				}
				time.Sleep(5 * time.Minute)
				if n := srv.Requests("DescribeStreamSummary"); n > asked+2+int(away/time.Second) {
					t.Errorf("asked %d times", n)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The leader reads the creation time of a stream. Before the leader lists the shards, the stream is
// deleted and created again, so the known creation time is wrong. The leader must notice this
// within two minutes, although it usually checks the creation time only once an hour.
func TestAStreamThatIsMadeAnewBeforeItsFirstListing(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		srv.Control("ListShards", func(call *kinesistest.Call) kinesistest.Fault {
			if call.N == 1 {
				srv.DeleteStream("s")
				time.Sleep(time.Second) // creation times differ by at least a millisecond
				srv.CreateStream("s", 2)
			}
			return kinesistest.Fault{}
		})
		store, s := memstore.New(), &seen{data: map[string]int{}}
		stop := start(t, srv.Client(), store, weir.Options{}, s.handle)
		until(t, "it is listed", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
		srv.Put("s", "k", []byte("new"))
		until(t, "it is read", 10*time.Second, func() bool { return s.all() == "s new" })
		born := func() (all []int64) {
			v, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range v.Leases {
				all = append(all, l.Born)
			}
			return all
		}
		before := born()
		until(t, "its birth is known", 2*time.Minute, func() bool { now := born(); return now[0] > before[0] && now[1] == now[0] })
		asked := srv.Requests("DescribeStreamSummary")
		time.Sleep(30 * time.Minute)
		if n := srv.Requests("DescribeStreamSummary"); n > asked+1 {
			t.Errorf("asked %d times, and %d times after that", asked, n-asked)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNoPermissionToAskWhenAStreamWasCreatedIsSaidOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.CreateStream("z", 1)
		srv.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
		})
		s := &seen{data: map[string]int{}}
		var log lines
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"s", "z"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, s.handle)
		srv.Put("s", "k", []byte("1"))
		time.Sleep(3 * time.Hour)
		if n := log.count("no permission to look up the creation time of a stream"); n != 1 || s.all() != "s 1" {
			t.Errorf("it was said %d times; handled %s", n, s.all())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// lines is a log that keeps its lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, what) {
			n++
		}
	}
	return n
}

// A call may be refused because this machine's clock is wrong, or because the credentials have
// expired. That does not mean that a permission is missing, so the call is repeated soon.
func TestASignatureThatIsRefusedIsNoLackOfPermission(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "ExpiredTokenException"} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			asked := 0
			srv.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault {
				if asked++; asked > 2 {
					return kinesistest.Fault{}
				}
				return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
			})
			store := memstore.New()
			var log lines
			s := &seen{data: map[string]int{}}
			stop := start(t, srv.Client(), store, weir.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, s.handle)
			srv.Put("s", "k", []byte("1"))
			time.Sleep(30 * time.Second)
			view, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			if n := log.count("no permission to look up the creation time of a stream"); n != 0 || s.all() != "s 1" || len(view.Leases) != 1 || view.Leases[0].Born == 0 {
				t.Errorf("%s: it was said %d times; handled %q; leases %+v", code, n, s.all(), view.Leases)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
