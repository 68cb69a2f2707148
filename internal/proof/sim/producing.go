package sim

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/producer"
)

// producing is the part of an application that puts records, in a profile with producers.
type producing struct {
	makers []*maker
	judge  *judge.Puts
	// drops is set if workers drop repeats, and own if they drop records of other shards. seen
	// contains the shards with records of a number.
	drops  bool
	own    bool
	seen   map[aggregate.Number][]*model.Shard
	strays map[judge.ID]bool       // stored copies that workers drop, because another shard owns the key
	made   map[judge.ID]madeRecord // accepted records
	copies map[copyOf]judge.ID     // how consumers name each stored copy
}

// copyOf identifies a stored copy of a record that a producer was given. number is the sequence
// number of the stream record that contains the copy, alone or in an aggregate.
type copyOf struct {
	number string
	id     judge.ID
}

// madeRecord is a record as it was passed to a producer.
type madeRecord struct{ key, explicit, data, tag string }

// maker is a producer of the application; its lives follow one another.
type maker struct {
	worker
	now *making // the current life, nil between two
}

// making is one life of a producer.
type making struct {
	*life
	of      *maker
	p       *producer.Producer
	options producer.Options
	within  time.Duration // how long Close may take, set before its context ends

	mu       sync.Mutex
	outcomes []outcome // since the driver last looked
}

// outcome is a call of Record.Done.
type outcome struct {
	id     judge.ID
	result producer.Result
	err    error
}

// makeProducers creates the producers.
func (w *world) makeProducers() {
	most := w.profile.Producers
	if most == 0 {
		return
	}
	w.producing = &producing{
		judge: judge.NewPuts(), seen: map[aggregate.Number][]*model.Shard{}, strays: map[judge.ID]bool{}, made: map[judge.ID]madeRecord{}, copies: map[copyOf]judge.ID{},
	}
	drops := roll(w.seed, "drops repeats")
	w.producing.drops, w.producing.own = drops.chance(.6), drops.chance(.5)
	d := roll(w.seed, "producers")
	for i := range 1 + d.below(most) {
		m := &maker{worker: worker{name: fmt.Sprintf("p%d", i), rate: 1}}
		w.producing.makers = append(w.producing.makers, m)
		w.after(d.span(0, time.Second), func() { w.startProducer(m) })
	}
	w.after(w.settings.lasts+stillPutting, func() {
		for _, m := range w.producing.makers {
			if m.now != nil && !m.now.stopping {
				w.closeProducer(m.now, closesWithin)
			}
		}
	})
}

// closesWithin limits the time of Close without faults.
const closesWithin = 90 * time.Second

// puts reports whether producers still get records.
func (w *world) puts() bool {
	return w.stage <= settling && time.Duration(w.now()) < w.settings.lasts+stillPutting
}

// startProducer begins a life of a producer.
func (w *world) startProducer(of *maker) {
	if !w.puts() {
		return
	}
	of.lifes++
	l := &life{
		w: w, of: &of.worker, index: w.begun, who: judge.Worker{Name: of.name, Life: of.lifes},
		began: w.now(), counts: map[string][]counted{}, done: make(chan struct{}),
		hindered: newHindered(), pins: map[string]int64{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	w.begun++
	m := &making{life: l, of: of}
	of.now = m
	client := kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.sim"),
		HTTPClient: &http.Client{Transport: service{l}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "sim", SecretAccessKey: "sim", Source: "sim"}, nil
		}),
	})
	d := roll(w.seed, "producer "+l.who.String())
	m.options = producerOptions(&d)
	numbers := roll(w.seed, "numbers "+l.who.String())
	m.options.Numbered = !m.options.Unordered && !m.options.NoAggregation && numbers.chance(.8)
	w.note(l, "starts", "", 0, fmt.Sprintf("%+v", m.options))
	m.options.Logger = quiet
	var err error
	if m.p, err = producer.New(client, m.options); err != nil {
		w.breaks("the options of a producer are refused: %v", err)
		return
	}
	go func() { // ends when the producer has crashed or was closed
		<-l.ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), m.within)
		err := m.p.Close(ctx)
		cancel()
		close(l.done)
		w.gate.tell(&call{life: l, op: "closed", ctx: l.ctx, body: closedCall{m, err}})
	}()
	w.feed(m)
}

// closedCall reports that Close of a producer has returned.
type closedCall struct {
	m   *making
	err error
}

// producerOptions chooses random options for a producer.
func producerOptions(d *dice) producer.Options {
	o := producer.Options{
		Stream: firstStream, Unordered: d.chance(.2), NoAggregation: d.chance(.3),
		MaxRecords: 20 + d.below(500), MaxRequests: 1 + d.below(8),
		Linger: d.often(time.Millisecond, 300*time.Millisecond),
	}
	if d.chance(.2) {
		o.MaxAge = d.span(500*time.Millisecond, 20*time.Second)
	}
	return o
}

// feed passes some records to a producer, from time to time.
func (w *world) feed(m *making) {
	if m.dead.Load() || m.stopping || !w.puts() {
		return
	}
	d := roll(w.seed, "feed "+m.who.String(), uint64(w.now()))
	n := 1 + d.below(4)
	if d.chance(.3) {
		n = 1 + d.below(40)
	}
	w.feedSome(m, n, d)
}

// feedSome passes n records to a producer, one per step. So the seed alone decides how many of them
// the producer has when it sends.
func (w *world) feedSome(m *making, n int, d dice) {
	if m.dead.Load() || m.stopping {
		return
	}
	w.stirred = true
	if full := !w.putOne(m, &d); full || n == 1 {
		w.after(d.span(5*time.Millisecond, 2*w.profile.Records), func() { w.feed(m) })
		return
	}
	w.after(d.span(0, 20*time.Microsecond), func() { w.feedSome(m, n-1, d) })
}

// putOne passes a record to a producer. It returns false if the producer does not accept it.
func (w *world) putOne(m *making, d *dice) bool {
	n := d.below(w.settings.keys)
	r := madeRecord{key: "k" + strconv.Itoa(n)}
	if n%7 == 3 {
		high := new(big.Int).SetUint64(mix(uint64(n)))
		r.explicit = high.Lsh(high, 64).String()
	}
	id := w.producing.judge.Next(r.key + "@" + m.who.String())
	name, rest := payload(id, d.below(200))
	r.data = string(append(name, rest...))
	var tags aggregate.Tags
	if n%3 == 1 {
		r.tag = id.String()
		tags = tags.With("id", r.tag)
	}
	_, err := m.p.TryPut(producer.Record{
		PartitionKey: r.key, ExplicitHashKey: r.explicit, Data: []byte(r.data), Tags: tags,
		Done: func(result producer.Result, err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.outcomes = append(m.outcomes, outcome{id, result, err})
		},
	})
	switch {
	case err == nil:
		w.producing.made[id] = r
		w.producing.judge.Accepted(id, m.who, !m.options.Unordered)
	case !errors.Is(err, producer.ErrFull):
		w.breaks("%s does not accept a record: %v", m.who, err)
	}
	return err == nil
}

// heardOutcomes checks the outcomes of all producers since the last call.
func (w *world) heardOutcomes() {
	if w.producing == nil {
		return
	}
	for _, of := range w.producing.makers {
		if of.now != nil {
			w.hears(of.now)
		}
	}
	if w.wrong == "" {
		w.wrong = w.producing.judge.Wrong()
	}
}

// hears checks the outcomes of a producer since the last call.
func (w *world) hears(m *making) {
	m.mu.Lock()
	outcomes := m.outcomes
	m.outcomes = nil
	m.mu.Unlock()
	w.noteOutcomes(m, outcomes)
	for _, o := range outcomes {
		r := o.result
		if o.err == nil {
			at := judge.Place{Shard: r.Shard, Number: r.SequenceNumber, Index: r.SubSequenceNumber}
			w.producing.judge.Confirmed(o.id, m.who, at, r.Repeated)
			continue
		}
		var failed *producer.Error
		switch {
		case !errors.As(o.err, &failed):
			w.breaks("%s has an error that is no *producer.Error: %v", o.id, o.err)
			return
		case errors.Is(failed, producer.ErrRefused) && w.profile.Rates[PutDenied] > 0:
		case errors.Is(failed, producer.ErrExpired) && m.options.MaxAge > 0:
		case errors.Is(failed, producer.ErrClosed) && m.stopping:
		default:
			w.breaks("%s fails without a reason: %v", o.id, o.err)
		}
		w.producing.judge.Failed(o.id, m.who, failed.MaybeStored)
	}
}

// noteOutcomes adds outcomes to the history. When Close cancels several calls, failures come in any
// order, so they are sorted.
func (w *world) noteOutcomes(m *making, outcomes []outcome) {
	var failures []string
	for _, o := range outcomes {
		if o.err != nil {
			failures = append(failures, o.id.String()+" "+o.err.Error())
			continue
		}
		what := o.id.String() + " " + o.result.SequenceNumber
		w.note(m.life, "confirmed", o.result.Shard, o.result.Attempts, what)
	}
	slices.Sort(failures)
	for _, what := range failures {
		w.note(m.life, "failed", "", 0, what)
	}
}

// crashProducer ends a producer immediately: its calls have no effect any more.
func (w *world) crashProducer(m *making) {
	w.hears(m)
	m.dead.Store(true)
	m.unparkAll()
	m.cancel()
	w.stirred = true
	w.producerEnds(m)
}

// closeProducer calls Close.
func (w *world) closeProducer(m *making, within time.Duration) {
	m.stopping, m.within = true, within
	m.cancel()
	w.stirred = true
}

// producerClosed processes the return of Close.
func (w *world) producerClosed(m *making, err error) {
	if m.dead.Load() {
		return
	}
	w.hears(m)
	w.note(m.life, "closed", "", 0, fmt.Sprint(err))
	var remaining *producer.RemainingError
	if err != nil && (m.within == closesWithin || !errors.As(err, &remaining)) {
		w.breaks("Close of %s returns %v", m.who, err)
	}
	if n := w.producing.judge.Open(m.who); n > 0 {
		w.breaks("%s is closed, and %d records have no outcome", m.who, n)
	}
	w.producerEnds(m)
}

// producerEnds notes that a life is over, and schedules the next one.
func (w *world) producerEnds(m *making) {
	m.of.now = nil
	d := roll(w.seed, "restart "+m.who.String())
	w.after(d.often(100*time.Millisecond, 10*time.Second), func() { w.startProducer(m.of) })
}

// unproduced describes what the producers still have to do. It returns "" if they have nothing left
// to do.
func (w *world) unproduced() string {
	if w.producing == nil || w.puts() {
		return ""
	}
	for _, m := range w.producing.makers {
		if m.now != nil {
			w.duties.late = w.now() // Close has a separate limit
			return m.name + " is not closed"
		}
	}
	return ""
}

// produced checks the order of keys, and that handlers got all confirmed records.
func (w *world) produced() {
	if w.producing != nil {
		w.producing.judge.End()
		w.heardOutcomes()
	}
}

// handledID returns the ID of a record that a handler gets.
func (w *world) handledID(r weir.Record) (judge.ID, bool) {
	id, ok := idOf(r.Data)
	p := w.producing
	if p == nil || !ok {
		return id, ok
	}
	copyID, known := p.copies[copyOf{r.SequenceNumber, id}]
	is := p.made[id]
	if !known || is.key != r.PartitionKey || is.data != string(r.Data) {
		return id, false
	}
	if tag, tagged := r.Tags().Get("id"); tagged && tag != is.tag {
		return id, false
	}
	p.judge.Handled(id, copyID.Key == is.key)
	return copyID, true
}

// producerLives returns the lives of producers that run.
func (w *world) producerLives() (all []*life) {
	if w.producing == nil {
		return nil
	}
	for _, m := range w.producing.makers {
		if m.now != nil {
			all = append(all, m.now.life)
		}
	}
	return all
}
