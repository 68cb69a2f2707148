package behaviour

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// If the store is unreachable for half of FailoverAfter, no worker stops. It does not matter when
// the outage begins, or whether calls fail immediately or get no answer.
func TestAShortOutageOfTheStoreStopsNobody(t *testing.T) {
	for _, deny := range []bool{false, true} {
		bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
			s, store := newSink(t), memstore.New()
			var stops []func() error
			var conns []*faultyStore
			var ended told
			for range 2 {
				conn := &faultyStore{Store: slow{store}, deny: deny}
				conns = append(conns, conn)
				stops = append(stops, start(t, srv.Client(), conn, weir.Options{OnEvent: ended.events()}, s.handle))
			}
			fill(srv, s, 20, 2)
			until(t, "everything handled", 2*time.Minute, func() bool { return s.missing() == 0 })
			time.Sleep(30 * time.Second)
			before := len(ended.reasons())
			for phase := range 50 {
				for _, c := range conns {
					c.set(true, 0)
				}
				time.Sleep(2500 * time.Millisecond) // half of FailoverAfter
				fill(srv, s, 20, 1)
				for _, c := range conns {
					c.set(false, 0)
				}
				time.Sleep(10*time.Second + time.Duration(phase)*20*time.Millisecond)
			}
			if all := ended.reasons()[before:]; len(all) > 0 {
				t.Errorf("calls fail at once: %t: leases ended: %v", deny, all)
			}
			if s.missing() > 0 {
				t.Errorf("%d records were not handled", s.missing())
			}
			if err := errors.Join(stops[0](), stops[1]()); err != nil {
				t.Error(err)
			}
			s.judge()
			if s.again != 0 {
				t.Errorf("%d records were handled twice", s.again)
			}
		})
	}
}

// slow is a store that takes a quarter of the heartbeat interval for a heartbeat.
type slow struct{ lease.Store }

func (s slow) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	time.Sleep(250 * time.Millisecond)
	return s.Store.Heartbeat(ctx, app, r)
}

// Each worker logs one warning about an outage of the store, for any number of leases. The outage
// moves no lease. All workers recover without help.
func TestAnOutageOfTheStoreWithAHundredLeases(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"short": 2500 * time.Millisecond, "long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 100, func(t *testing.T, srv *kinesistest.Server) {
				s, store := newSink(t), memstore.New()
				var stops []func() error
				var conns []*faultyStore
				var logs []*lines
				var ended told
				for range 2 {
					conn, log := &faultyStore{Store: store}, &lines{}
					conns, logs = append(conns, conn), append(logs, log)
					stops = append(stops, start(t, srv.Client(), conn, weir.Options{
						Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})), OnEvent: ended.events(),
					}, s.handle))
				}
				fill(srv, s, 300, 2)
				until(t, "everything handled", 2*time.Minute, func() bool { return s.missing() == 0 })
				time.Sleep(30 * time.Second)
				before, err := store.View(t.Context(), "app", "")
				if err != nil {
					t.Fatal(err)
				}
				told := len(ended.reasons())
				for _, c := range conns {
					c.set(true, 0)
				}
				time.Sleep(lasts)
				fill(srv, s, 300, 2)
				for _, c := range conns {
					c.set(false, 0)
				}
				until(t, "what came meanwhile handled", time.Minute, func() bool { return s.missing() == 0 })
				time.Sleep(10 * time.Second) // until the last unanswered heartbeat has timed out
				for _, log := range logs {
					down, up := log.count("the store does not answer"), log.count("")
					if down != 1 || up != 1 {
						t.Errorf("the outage was told %d times, and there are %d warnings: %q", down, up, log.all)
					}
				}
				after, err := store.View(context.Background(), "app", "")
				if err != nil {
					t.Fatal(err)
				}
				for i, l := range after.Leases {
					if l.Owner != before.Leases[i].Owner || l.Epoch != before.Leases[i].Epoch {
						t.Errorf("%s has moved to %s", before.Leases[i], l)
					}
				}
				if lasts < time.Minute && len(ended.reasons()) != told {
					t.Error("terms ended although the leases were still valid")
				}
				if err := errors.Join(stops[0](), stops[1]()); err != nil {
					t.Error(err)
				}
				s.judge()
			})
		})
	}
}
