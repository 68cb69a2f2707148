package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// bench is an engine with a stream s of one shard and an active consumer c. It has its own clock,
// so no test waits.
type bench struct {
	t   *testing.T
	e   *Engine
	now time.Time
	arn string
}

func newBench(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	cfg := Config{
		Region: "us-east-1", Account: "000000000000", ShardLimit: 100, MaxBytes: 1 << 30,
		SubscriptionLife: 5 * time.Minute, IdleEvents: 5 * time.Second,
	}
	change(&cfg)
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, e: e, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.must(e.Run(b.now, NewCreate("s", 1)))
	b.must(e.Run(b.now, e.NewRegister("s", "c")))
	if b.arn, err = e.FinishConsumer(b.now, "s", "c"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) try(kind, sequence string) (*Subscription, error) {
	r := &SubscribeToShard{
		consumerRef: consumerRef{consumer: codec.Some(b.arn)}, shard: codec.Some(shardID(0)),
		positioned: true, kind: codec.Some(kind), sequence: codec.Opt[string]{V: sequence, Set: sequence != ""},
	}
	err := b.e.Do(b.now, "SubscribeToShard", r, Inject{}, codec.NewEncoder(codec.JSON, nil, false))
	return r.Subscription, err
}

func (b *bench) subscribe(kind, sequence string) *Subscription {
	b.t.Helper()
	sub, err := b.try(kind, sequence)
	b.must(err)
	return sub
}

func (b *bench) put(size int) string {
	b.t.Helper()
	put := NewPut("s", "k", make([]byte, size-1))
	b.must(b.e.Run(b.now, put))
	return put.Sequence
}

// step calls Next and describes the result in words.
func (b *bench) step(sub *Subscription) string {
	step := b.e.Next(b.now, sub)
	var said string
	if ev := step.Event; ev != nil {
		said = fmt.Sprintf("%d records, %d behind", len(ev.records), ev.behind)
		if (ev.continuation == "") != ev.end || (len(ev.children) > 0) != ev.end {
			b.t.Errorf("half an end: %+v", ev)
		}
	}
	var e *Error
	if errors.As(step.Err, &e) {
		said += e.Code
	}
	if step.End {
		return said + ", the end"
	}
	if step.Event == nil {
		said += "wait " + step.Wait.String()
	}
	return said
}

func TestNext(t *testing.T) {
	type action func(b *bench)
	later := func(d time.Duration) action { return func(b *bench) { b.now = b.now.Add(d) } }
	put := func(n, size int) action {
		return func(b *bench) {
			for range n {
				b.put(size)
			}
		}
	}
	delay := func(d time.Duration) action { return func(b *bench) { b.e.SetStateDelay(d) } }
	split := func(b *bench) { b.must(b.e.Run(b.now, NewSplit("s", shardID(0), "1000"))) }
	const kib = 1 << 10
	limits, none := func(*Config) {}, func(cfg *Config) { cfg.NoLimits = true }
	type line struct {
		do   action
		want string // the result of the following Next
	}
	for _, tc := range []struct {
		name  string
		cfg   func(*Config)
		first action
		lines []line
	}{
		{"silence is broken by empty events and by the end", none, nil, []line{
			{nil, "wait 5s"},
			{later(4 * time.Second), "wait 1s"},
			{later(time.Second), "0 records, 0 behind"},
			{nil, "wait 5s"},
			{later(7 * time.Second), "0 records, 0 behind"},
			{later(4*time.Minute + 46*time.Second), "0 records, 0 behind"},
			{nil, "wait 2s"},
			{later(2*time.Second - 1), "wait 1ns"},
			{later(1), ", the end"},
		}},
		{"the end comes before records", none, nil, []line{
			{func(b *bench) { later(5 * time.Minute)(b); b.put(1) }, ", the end"},
		}},
		{"records come at once and begin the silence anew", none, nil, []line{
			{func(b *bench) { later(3 * time.Second)(b); b.put(1); b.put(1) }, "2 records, 0 behind"},
			{nil, "wait 5s"},
		}},
		{"an event has a mebibyte, or one record", none, nil, []line{
			{put(20, 100*kib), "10 records, 1 behind"},
			{later(time.Second), "10 records, 0 behind"},
			{func(b *bench) { b.e.streams["s"].maxRecordKiB = 10240; put(2, 3000*kib)(b) }, "1 records, 1 behind"},
			{nil, "1 records, 0 behind"},
		}},
		{"an event has ten thousand records", none, nil, []line{
			{put(10_001, 1), "10000 records, 1 behind"},
			{nil, "1 records, 0 behind"},
		}},
		{"two mebibytes a second", limits, put(5, 1024*kib), []line{
			{nil, "1 records, 1 behind"},
			{nil, "1 records, 1 behind"},
			{nil, "wait 500ms"},
			{later(200 * time.Millisecond), "wait 300ms"},
			{put(1, 1), "wait 300ms"},
			{later(300 * time.Millisecond), "1 records, 500 behind"},
			{nil, "wait 500ms"},
			{later(time.Hour / 60), "1 records, 60500 behind"},
		}},
		{"a paced subscription still has empty events", func(cfg *Config) { cfg.IdleEvents = 400 * time.Millisecond }, put(3, 1024*kib), []line{
			{nil, "1 records, 1 behind"},
			{nil, "1 records, 1 behind"},
			{nil, "wait 400ms"},
			{later(400 * time.Millisecond), "0 records, 400 behind"},
			{nil, "wait 100ms"},
			{later(100 * time.Millisecond), "1 records, 0 behind"},
		}},
		{"a split that is to come is waited for", none, delay(3 * time.Second), []line{
			{split, "wait 3s"},
			{later(time.Second), "wait 2s"},
			{put(1, 1), "1 records, 0 behind"},
			{later(2 * time.Second), "0 records, 0 behind, the end"},
		}},
		{"the end of the shard is with the last records", none, nil, []line{
			{func(b *bench) { b.put(1); split(b) }, "1 records, 0 behind, the end"},
		}},
		{"or in an event of its own", func(cfg *Config) { cfg.EndOnEmptyPage = true }, nil, []line{
			{func(b *bench) { b.put(1); split(b) }, "1 records, 0 behind"},
			{nil, "0 records, 0 behind, the end"},
		}},
		{"a closed shard that is not read goes with its records", func(cfg *Config) { cfg.SubscriptionLife = 100 * time.Hour }, nil, []line{
			{func(b *bench) { b.put(1); split(b); later(25 * time.Hour)(b) }, "ResourceNotFoundException, the end"},
		}},
		{"records that expire are passed over", func(cfg *Config) { cfg.SubscriptionLife = 100 * time.Hour }, nil, []line{
			{func(b *bench) { b.put(1); later(25 * time.Hour)(b); b.put(1) }, "1 records, 0 behind"},
		}},
		{"a takeover ends with an exception", none, nil, []line{
			{func(b *bench) { later(5 * time.Second)(b); b.subscribe(latest, "") }, "ResourceInUseException, the end"},
		}},
		{"or cleanly", func(cfg *Config) { cfg.TakeoverEndsCleanly = true }, nil, []line{
			{func(b *bench) { later(5 * time.Second)(b); b.subscribe(latest, "") }, ", the end"},
		}},
		{"the consumer is deregistered", none, delay(time.Second), []line{
			{func(b *bench) {
				b.must(b.e.Run(b.now, &DeregisterStreamConsumer{consumerRef{consumer: codec.Some(b.arn)}}))
			}, "ResourceNotFoundException, the end"},
		}},
		{"the stream is deleted", none, delay(time.Second), []line{
			{func(b *bench) { b.must(b.e.Run(b.now, NewDelete("s"))) }, "wait 1s"},
			{later(time.Second), "ResourceNotFoundException, the end"},
			{nil, "ResourceNotFoundException, the end"},
		}},
		{"the stream is another one of the same name", none, nil, []line{
			{func(b *bench) { b.must(b.e.Run(b.now, NewDelete("s"))); b.must(b.e.Run(b.now, NewCreate("s", 1))) }, "ResourceNotFoundException, the end"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, tc.cfg)
			if tc.first != nil {
				tc.first(b)
			}
			sub := b.subscribe(trimHorizon, "")
			for i, l := range tc.lines {
				if l.do != nil {
					l.do(b)
				}
				if got := b.step(sub); got != l.want {
					t.Errorf("line %d: got %q, want %q", i, got, l.want)
				}
			}
		})
	}
}

// TestSubscriptionsAreWoken checks that a subscription is woken whenever the result of Next
// changes.
func TestSubscriptionsAreWoken(t *testing.T) {
	for name, do := range map[string]func(b *bench){
		"by a record": func(b *bench) { b.put(1) },
		"by a split":  func(b *bench) { b.must(b.e.Run(b.now, NewSplit("s", shardID(0), "1000"))) },
		"by a split that is scheduled": func(b *bench) {
			b.e.SetStateDelay(time.Hour)
			b.must(b.e.Run(b.now, NewSplit("s", shardID(0), "1000")))
		},
		"by a split that is brought forward": func(b *bench) {
			b.e.SetStateDelay(time.Hour)
			b.must(b.e.Run(b.now, NewSplit("s", shardID(0), "1000")))
			<-b.e.streams["s"].shards[0].subs[0].Woken()
			b.must(b.e.Finish(b.now, "s"))
		},
		"by a takeover": func(b *bench) { b.now = b.now.Add(5 * time.Second); b.subscribe(latest, "") },
		"by the consumer's end": func(b *bench) {
			b.must(b.e.Run(b.now, &DeregisterStreamConsumer{consumerRef{consumer: codec.Some(b.arn)}}))
		},
		"by the stream's end": func(b *bench) { b.must(b.e.Run(b.now, NewDelete("s"))) },
	} {
		b := newBench(t, func(cfg *Config) { cfg.NoLimits = true })
		sub := b.subscribe(latest, "")
		select {
		case <-sub.Woken():
			t.Errorf("%s: woken before", name)
		default:
		}
		do(b)
		select {
		case <-sub.Woken():
		default:
			t.Errorf("%s: not woken", name)
		}
	}
}

func TestAnEndedSubscriptionLeavesNothing(t *testing.T) {
	b := newBench(t, func(cfg *Config) { cfg.NoLimits = true })
	var subs []*Subscription
	for range 3 {
		subs = append(subs, b.subscribe(latest, ""))
		b.now = b.now.Add(5 * time.Second)
	}
	sh, h := b.e.streams["s"].shards[0], b.e.streams["s"].consumers["c"].holds[0]
	if len(sh.subs) != 3 || h.sub != subs[2] {
		t.Errorf("%d subscriptions, hold %v", len(sh.subs), h.sub)
	}
	for i, sub := range []*Subscription{subs[1], subs[1], nil, subs[0]} { // a second Unsubscribe is harmless
		if b.e.Unsubscribe(sub); h.sub != subs[2] {
			t.Errorf("after end %d the youngest is gone", i)
		}
	}
	b.e.Unsubscribe(subs[2])
	if len(sh.subs) != 0 || h.sub != nil {
		t.Errorf("%d subscriptions, hold %v", len(sh.subs), h.sub)
	}
	// The hold is removed with its shard.
	b.must(b.e.Run(b.now, NewSplit("s", shardID(0), "1000")))
	b.now = b.now.Add(25 * time.Hour)
	if _, err := b.try(latest, ""); err == nil || len(b.e.streams["s"].consumers["c"].holds) != 0 {
		t.Errorf("got %v, holds %v", err, b.e.streams["s"].consumers["c"].holds)
	}
}

// TestContinuationNumbers checks the continuation numbers of events. With AT and with AFTER, each
// number must lead to the next record. The numbers must increase.
func TestContinuationNumbers(t *testing.T) {
	b := newBench(t, func(cfg *Config) { cfg.NoLimits, cfg.RefuseTrimmed, cfg.IdleEvents = true, true, time.Millisecond })
	last := sequence{}
	check := func(what string, wait time.Duration, records int, again uint64) {
		t.Helper()
		sub := b.subscribe(latest, "")
		for range records {
			b.put(1)
		}
		b.now = b.now.Add(wait)
		ev := b.e.Next(b.now, sub).Event
		if ev == nil || len(ev.records) != records {
			t.Fatalf("%s: %+v", what, ev)
		}
		n, good := parseSequence(ev.continuation)
		if !good || n.index < last.index || n.index == last.index && n.arrival <= last.arrival {
			t.Errorf("%s: %+v follows %+v", what, n, last)
		}
		last = n
		want := sub.index
		b.e.Unsubscribe(sub)
		for kind, want := range map[string]uint64{afterSequenceNumber: want, atSequenceNumber: want - again} {
			at := b.subscribe(kind, ev.continuation)
			if at.index != want {
				t.Errorf("%s: %s leads to %d, not %d", what, kind, at.index, want)
			}
			b.e.Unsubscribe(at)
		}
	}
	check("nothing yet", 5*time.Second, 0, 0)
	check("still nothing", 5*time.Second, 0, 0)
	check("records", 0, 3, 1) // reading AT the number of the last record repeats that record
	check("silence after records", 5*time.Second, 0, 0)
	check("one more", 0, 1, 1)
	check("silence in the same second as a record", time.Millisecond, 0, 0)
	check("records", 0, 2, 1)
	b.now = b.now.Add(25 * time.Hour)
	check("silence after all records have expired", 5*time.Second, 0, 0)
	check("a record after that", 0, 1, 1)
}
