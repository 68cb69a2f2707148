package consume

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// taken is a shard that this worker got.
type taken struct {
	lease.Key
	died bool // its previous owner died
}

// takenBy returns the shard of a log line about a lease that was taken.
func takenBy(r slog.Record) (t taken) {
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "stream":
			t.Stream = a.Value.String()
		case "shard":
			t.Shard = a.Value.String()
		case "died":
			t.died = true
		}
		return true
	})
	return t
}

// takeover is what the log says about the previous owner of shards.
type takeover struct {
	worker string // name of the previous owner
	shards int
	died   bool
	last   int64 // the minute since 1970 of its last report about one of the shards
}

// takeovers returns the previous owners of shards that this worker got, from the reports of the
// last minutes. It omits shards without a report of another worker.
func takeovers(got []taken, past observe.Past, self string) (all []takeover) {
	type who struct {
		worker string
		died   bool
	}
	of := map[who]*takeover{}
	for _, t := range got {
		for _, r := range slices.Backward(past[t.Key]) {
			name := cmp.Or(r.Worker, r.Session)
			if name == self {
				continue
			}
			k := who{name, t.died}
			if of[k] == nil {
				of[k] = &takeover{worker: name, died: t.died}
			}
			of[k].shards++
			of[k].last = max(of[k].last, r.Minute)
			break
		}
	}
	for _, t := range of {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b takeover) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.last, b.last))
	})
	return all
}

// recent is how far back the previous owner of a shard is looked up if it did not die: it still
// reported about the shard in one of the last minutes.
const recent = 5 * time.Minute

// previous logs from which workers the shards came that this worker got since the last look. It
// reads the history of the application, if the store has one.
func (s *story) previous(ctx context.Context, now time.Time) {
	got := s.leases.took()
	if len(got) == 0 || s.past == nil {
		return
	}
	since := now.Add(-recent)
	if slices.ContainsFunc(got, func(t taken) bool { return t.died }) {
		since = now.Add(-lease.HistoryKept) // no worker may have been alive for a while
	}
	chunks, err := s.past(ctx, since.Unix()/60)
	if err != nil {
		return // the lines about the leases are in the log
	}
	for _, t := range takeovers(got, observe.PastOf(chunks), s.worker) {
		why := "the previous owner handed them over"
		if t.died {
			why = "the heartbeats of the previous owner have stopped"
		}
		s.log.Info("shards of another worker were taken over", "from", t.worker, "shards", t.shards, "why", why,
			"last_report", time.Unix(60*t.last, 0).UTC().Format("15:04Z"))
	}
}
