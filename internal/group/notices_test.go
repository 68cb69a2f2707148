package group

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestPausesAndFullWorkersAreLoggedOnce(t *testing.T) {
	of := func(id string, parents ...string) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Position: shard.Oldest, Parents: parents}
	}
	leases := []lease.Lease{of("1"), of("2"), of("3"), of("4", "1")}
	full := func(more ...lease.Worker) lease.View {
		return lease.View{Leases: leases, Workers: append([]lease.Worker{{Session: "a", MaxLeases: 2}}, more...)}
	}
	noted := func(v lease.View) lease.View {
		v.PauseNotes = map[string]string{"s": lease.PauseNote{By: "ada@laptop", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}.String()}
		return v
	}
	var log bytes.Buffer
	var n notices
	for _, step := range []struct {
		name   string
		view   lease.View
		paused []string
		want   []string
	}{
		{"enough room", full(lease.Worker{Session: "b", MaxLeases: 1}), nil, nil},
		{"a worker ended", full(lease.Worker{Session: "b", MaxLeases: 1, Ended: true}), nil, []string{"no worker has room", "shards=1"}},
		{"still", full(), nil, nil},
		{"more shards than before", lease.View{Leases: append(leases, of("5"), of("6")), Workers: full().Workers}, nil, []string{"shards=3"}},
		{"another worker with a limit", lease.View{Leases: append(leases, of("5"), of("6")), Workers: full(lease.Worker{Session: "b", MaxLeases: 1}).Workers}, nil, []string{"no worker has room", "shards=2"}},
		{"a worker without a limit", full(lease.Worker{Session: "c"}), nil, nil},
		{"again", full(), nil, []string{"no worker has room"}},
		{"its stream is paused", noted(full()), []string{"s"}, []string{"has paused a stream", "stream=s", "by=ada@laptop", "paused_at=2026-01-02T03:04:05Z"}},
		{"still paused", full(), []string{"s"}, nil},
		{"the application, too", full(), []string{"", "s"}, []string{"has paused the application"}},
		{"all resumed", full(lease.Worker{Session: "c"}), nil, []string{"has resumed the application", "has resumed a stream"}},
		{"no worker lives", lease.View{Leases: leases}, nil, nil},
	} {
		log.Reset()
		n.log(slog.New(slog.NewTextHandler(&log, nil)), step.view, step.paused)
		if got := log.String(); strings.Count(got, "\n") != 0 && step.want == nil {
			t.Errorf("%s: %s", step.name, got)
		}
		for _, want := range step.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: no %q in %s", step.name, want, log.String())
			}
		}
	}
}
