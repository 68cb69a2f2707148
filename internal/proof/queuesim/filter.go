package queuesim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/queue"
)

// form is the payload of a record, as the filter sees it.
type form int

const (
	wanted   form = iota // JSON that the filter passes
	unwanted             // JSON that it drops
	notJSON              // text, or a packed aggregate
)

// orders passes the orders, which some producers compress.
var orders = payload.Matching(filter.MustCompile(`{"data": {"kind": ["order"]}}`), payload.Gzip{})

// drawForm draws the payload of a record, and how often the filter panics at it.
func (p *Profile) drawForm(r *rand.Rand, f *fate) {
	f.form = one(r, wanted, wanted, wanted, wanted, wanted, unwanted, unwanted, notJSON)
	f.packs = r.IntN(5) == 0
	switch x := r.Float64(); {
	case x < p.failures/2:
		f.filterPanics = between(r, 1, 2)
	case x < (p.failures+p.poison)/2:
		f.filterPanics = 1000 // always, as far as a simulation goes
	}
}

// content returns the payload of a record, and its data in the queue.
func (f *fate) content(key string) (text string, data []byte) {
	switch f.form {
	case wanted:
		text = fmt.Sprintf(`{"kind":"order","id":%q,"text":%q}`, key, strings.Repeat("a", 60))
	case unwanted:
		text = fmt.Sprintf(`{"kind":"bill","id":%q,"text":%q}`, key, strings.Repeat("a", 60))
	case notJSON:
		text = fmt.Sprintf("kind: order, id: %s, text: %s", key, strings.Repeat("a", 60))
	}
	data = []byte(text)
	if f.packs {
		var err error
		if data, err = (payload.Gzip{Level: 1}).Encode(context.Background(), data); err != nil {
			panic(err) // the level is valid
		}
	}
	return text, data
}

// decodes checks the data that the handler gets.
func (l *life) decodes(ctx context.Context, r *queue.Record, p part) {
	want, ok := l.texts[p]
	if !ok {
		return // a packed aggregate or a large record
	}
	if got, err := payload.Decode(ctx, r.Data, payload.Gzip{}); err != nil || string(got) != want {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken("%s gets other data of %s: %v", l.name, r.Key(), err)
	}
}

// fateOf returns the fate of a part.
func (w *world) fateOf(p part) fate {
	if p.sub == 0 {
		return w.fates[p.record.id]
	}
	return w.fates[fmt.Sprintf("%s+%d", p.record.id, p.sub)]
}

// drops reports whether the filter of the simulation drops a part.
func (w *world) drops(p part) bool {
	f := w.fateOf(p)
	switch {
	case w.options.Filter.By == nil:
		return false
	case f.form == notJSON:
		return w.options.Filter.NotJSON == weir.DropNotJSON
	}
	return f.form == unwanted
}

// refuses reports whether a part is set aside because of the filter.
func (w *world) refuses(p part) bool {
	return w.options.Filter.By != nil && w.options.Filter.NotJSON == weir.FailNotJSON && w.fateOf(p).form == notJSON
}

// matcher is the filter of a process.
type matcher struct{ *life }

// Match implements [weir.Matcher].
func (m matcher) Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool) {
	if m.filters(string(data), partitionKey, arrival) {
		panic("queuesim: the filter panics")
	}
	return orders.Match(data, partitionKey, arrival)
}

// filters notes a call of the filter. It returns whether the filter panics.
func (l *life) filters(data, key string, arrival time.Time) (panics bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed {
		return false
	}
	p, ok := l.parts[data]
	if !ok || key != l.keyOf(p) || !arrival.Equal(p.record.arrived) {
		l.broken("the filter of %s gets data, a key or a time of no record", l.name)
		return false
	}
	l.filterCalls[p]++
	panics = l.filterCalls[p] <= l.fateOf(p).filterPanics
	switch {
	case panics:
		l.failed[p.record.id] = true
	case l.refuses(p):
		l.failed[p.record.id], l.refused[p.record.id] = true, true
	case l.drops(p):
		l.dropped[p] = true
		l.droppings++
	}
	return panics
}
