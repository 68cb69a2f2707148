package window

import (
	"context"
	"strings"
	"time"

	"github.com/weir-go/weir"
)

// term makes the windows of a shard for one term. Of a shard one time is open at a time: a record
// that arrived a moment before the one ahead of it counts with that, so each time's records follow
// each other, and the place between two times is where the next owner may begin.
type term[S any] struct {
	*Config[S]
	shard *weir.Shard

	from    weir.Position // what is open began there, or begins
	first   weir.Position // after the first record of it, which names its windows
	at      weir.Position // after the last record of it
	start   time.Time     // of its windows
	windows []Result[S]   // empty while nothing is open
	index   map[string]int
	records int
	bytes   int
}

// run reads the shard until the term or the shard ends.
func (t *term[S]) run(ctx context.Context) error {
	for b, err := range t.shard.Batches() {
		if err != nil {
			return nil // the next owner reads what is open again
		}
		for _, r := range b.Records {
			if err := t.take(ctx, r); err != nil {
				return err
			}
		}
		switch {
		case b.End:
			err = t.end(ctx, ShardEnded, true)
		case len(t.windows) > 0 && !b.Tip.Before(t.start.Add(t.Size+t.Allowance)):
			err = t.end(ctx, Passed, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take adds a record, and ends what is open before it if it belongs to a later time or is too much.
func (t *term[S]) take(ctx context.Context, r weir.Record) error {
	start := truncate(r.ArrivalTime(), t.Size)
	if len(t.windows) > 0 {
		switch {
		case start.After(t.start):
			if err := t.end(ctx, Passed, false); err != nil {
				return err
			}
		case t.records >= t.MaxRecords || t.bytes+len(r.Data) > t.MaxBytes:
			if err := t.end(ctx, Full, false); err != nil {
				return err
			}
		}
	}
	if len(t.windows) == 0 {
		t.start, t.first, t.index = start, r.Position(), map[string]int{}
	}
	key := ""
	if t.ByKey {
		key = r.PartitionKey
	}
	i, known := t.index[key]
	if !known {
		i, key = len(t.windows), strings.Clone(key) // the record's is of a page
		t.index[key] = i
		t.windows = append(t.windows, Result[S]{ID: t.id(key), Key: key, State: t.New(), Start: t.start, End: t.start.Add(t.Size)})
	}
	w := &t.windows[i]
	state, err := t.Add(w.State, r)
	if err != nil {
		return err
	}
	w.State, t.at = state, r.Position()
	w.Records++
	t.records++
	t.bytes += len(r.Data)
	return nil
}

// truncate is the last multiple of size since 1970 that is not after t.
func truncate(t time.Time, size time.Duration) time.Time {
	return t.Add(-time.Duration(t.UnixNano()) % size).Round(0).UTC()
}

// id names a window of what is open: by its first record, because where an owner begins may differ
// when records that a filter drops lie before it.
func (t *term[S]) id(key string) string {
	id := t.shard.Stream + "/" + t.shard.Shard + "/" + t.start.Format(time.RFC3339) + "/" + t.first.String()
	if t.ByKey {
		id += "/" + key
	}
	return id
}

// end hands over what is open, and moves on.
func (t *term[S]) end(ctx context.Context, why Why, last bool) error {
	upTo := t.from
	if len(t.windows) > 0 {
		upTo = t.at
	}
	for i := range t.windows {
		t.windows[i].Why = why
	}
	err := t.Emit(ctx, Results[S]{Term: t.shard.Term, Windows: t.windows, From: t.from, UpTo: upTo, End: last})
	if err != nil {
		return err
	}
	t.from, t.windows, t.records, t.bytes = upTo, nil, 0, 0
	if last {
		return nil // weir notes the end when Pull returns
	}
	return t.shard.Done(upTo)
}
