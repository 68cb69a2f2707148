package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/judge"
)

// patience is the time limit for every wait of the script. Exceeding it is an error.
const patience = 45 * time.Second

// The steps of the script, in order.
const (
	stepStart = iota
	stepSplit
	stepMerge
	stepJoin
	stepKill
	stepStop
	stepRest
	stepDrain
)

// script runs the steps one after the other, while the producer puts the demo's records, which are
// about flights. Each step starts after the effect of the previous step was seen.
func (d *stage) script(ctx context.Context, producer *producer) error {
	who := "another worker"
	if d.options.Leader {
		who = "the leader"
	}
	d.steps = []step{
		stepStart: {text: fmt.Sprintf("start %d workers", d.options.Workers)},
		stepSplit: {text: "split a shard"},
		stepMerge: {text: "merge two shards"},
		stepJoin:  {text: "one more worker joins"},
		stepKill:  {text: "kill " + who + " (SIGKILL)"},
		stepStop:  {text: "stop a worker gracefully"},
		stepRest:  {text: "put the rest of the flights"},
		stepDrain: {text: "handle every flight"},
	}
	if d.page != "" {
		d.event("watch it in a browser: %s", d.page)
	}
	for _, run := range []func(context.Context) error{d.start, d.split, d.merge, d.join, d.kill, d.stop} {
		if err := run(ctx); err != nil {
			return err
		}
		if err := d.wait(ctx, d.options.Duration/11); err != nil {
			return err
		}
	}
	d.scriptDone.Store(true)
	return d.drain(ctx, producer)
}

func (d *stage) start(ctx context.Context) error {
	for range d.options.Workers {
		if _, err := d.hire(); err != nil {
			return err
		}
	}
	d.begin(stepStart, "%d workers start: %s; the stream has %d shards", d.options.Workers, strings.Join(d.names(), ", "), d.options.Shards)
	took, err := d.await(ctx, "the workers share the shards", func(p picture) bool {
		return p.distinct > 0 && len(p.shards) == d.options.Shards && p.balanced(d.options.Workers)
	})
	if err != nil {
		return err
	}
	d.end(stepStart, took, "all %d shards are read", d.options.Shards)
	return nil
}

func (d *stage) split(ctx context.Context) error {
	p, err := d.look(ctx)
	if err != nil {
		return err
	}
	parent, err := p.busiest()
	if err != nil {
		return err
	}
	d.begin(stepSplit, "shard %s, the busiest, is split", parent.short())
	_, err = d.client.SplitShard(ctx, &kinesis.SplitShardInput{StreamName: aws.String(stream), ShardToSplit: aws.String(parent.id),
		NewStartingHashKey: aws.String(parent.hash.Middle().String())})
	if err != nil {
		return fmt.Errorf("shard %s cannot be split: %w", parent.short(), err)
	}
	return d.reshaped(ctx, stepSplit, 2, &d.result.Splits, parent.id)
}

func (d *stage) merge(ctx context.Context) error {
	p, err := d.look(ctx)
	if err != nil {
		return err
	}
	lower, upper, err := p.quietestPair()
	if err != nil {
		return err
	}
	d.begin(stepMerge, "shards %s and %s, neighbours, are merged", lower.short(), upper.short())
	_, err = d.client.MergeShards(ctx, &kinesis.MergeShardsInput{StreamName: aws.String(stream), ShardToMerge: aws.String(lower.id),
		AdjacentShardToMerge: aws.String(upper.id)})
	if err != nil {
		return fmt.Errorf("shards %s and %s cannot be merged: %w", lower.short(), upper.short(), err)
	}
	return d.reshaped(ctx, stepMerge, 1, &d.result.Merges, lower.id, upper.id)
}

// reshaped waits until the parent shards are read to their ends and records of all child shards
// have been handled.
func (d *stage) reshaped(ctx context.Context, at, children int, count *int, parents ...string) error {
	var names []string
	took, err := d.await(ctx, "the children are read", func(p picture) bool {
		names = names[:0]
		for _, c := range p.childrenOf(parents...) {
			if c.distinct > 0 {
				names = append(names, c.short())
			}
		}
		return len(names) == children && p.quiet()
	})
	if err != nil {
		return err
	}
	*count++
	d.end(at, took, "%s read", strings.Join(names, " and "))
	return nil
}

func (d *stage) join(ctx context.Context) error {
	p, err := d.hire()
	if err != nil {
		return err
	}
	d.begin(stepJoin, "worker %s joins", p.name)
	if _, err = d.await(ctx, "the leases are shared evenly", func(now picture) bool {
		return now.worker(p.name).leases > 0 && now.balanced(d.options.Workers+1)
	}); err != nil {
		return err
	}
	d.result.JoinBalanced = time.Since(p.started)
	d.end(stepJoin, d.result.JoinBalanced, "balanced")
	return nil
}

func (d *stage) kill(ctx context.Context) error {
	var p picture
	var name string
	if _, err := d.await(ctx, "the leases rest and a leader leads", func(now picture) (found bool) {
		var err error
		p = now
		name, err = now.victim(d.options.Leader)
		return err == nil && now.quiet() && now.balanced(d.options.Workers+1)
	}); err != nil {
		return err
	}
	held := p.heldBy(name)
	d.begin(stepKill, "worker %s%s is killed; it holds %s", name, leads(p, name), short(held))
	killed := time.Now()
	if err := d.process(name).kill(); err != nil {
		return err
	}
	measure := func() judge.Gap { return judge.GapAfter(d.watch.journals, name, killed, held) }
	took, err := d.await(ctx, "its shards are read again", d.flows(measure))
	d.result.Kill = measure()
	if err != nil {
		return err
	}
	d.end(stepKill, took, "silent for %s", figures.Duration(d.result.Kill.Longest))
	return nil
}

func (d *stage) stop(ctx context.Context) error {
	var p picture
	var name string
	if _, err := d.await(ctx, "the leases rest", func(now picture) bool {
		var err error
		p = now
		name, err = now.victim(false)
		return err == nil && now.quiet() && now.balanced(d.options.Workers)
	}); err != nil {
		return err
	}
	held := p.heldBy(name)
	d.begin(stepStop, "worker %s is asked to stop; it holds %s", name, short(held))
	asked := time.Now()
	proc := d.process(name)
	if err := proc.stop(); err != nil {
		return err
	}
	measure := func() judge.Gap { return judge.GapBetween(d.watch.journals, name, asked, held) }
	flows := d.flows(measure)
	took, err := d.await(ctx, "it has ended and its shards are read again", func(p picture) bool { return !proc.alive() && flows(p) })
	d.result.Stop = measure()
	if err != nil {
		return err
	}
	d.end(stepStop, took, "silent for %s", figures.Duration(d.result.Stop.Longest))
	return nil
}

// flows returns a condition. It holds when each shard of the killed or stopped worker that is open
// or has unhandled records is read again. measure returns the gap, which lists the shards that are
// not read yet.
func (d *stage) flows(measure func() judge.Gap) func(picture) bool {
	return func(p picture) bool {
		waits := map[string]bool{}
		for _, s := range p.shards {
			waits[s.id] = s.lag() > 0 || !s.closed
		}
		for _, id := range measure().Silent {
			if waits[id] {
				return false
			}
		}
		return true
	}
}

func (d *stage) drain(ctx context.Context, producer *producer) error {
	d.begin(stepRest, "the rest of the flights is put")
	took, err := d.await(ctx, "all flights are put", func(picture) bool {
		select {
		case <-producer.done:
			return true
		default:
			return false
		}
	})
	if err != nil {
		return err
	}
	if producer.err != nil {
		return producer.err
	}
	d.end(stepRest, took, "%s put", figures.Count(len(d.flights)))
	d.begin(stepDrain, "the workers catch up")
	took, err = d.await(ctx, "every flight is handled", func(p picture) bool { return p.distinct == len(d.flights) })
	var late *lateError
	if errors.As(err, &late) {
		d.event("not every flight was handled within %s: the verdict says which", figures.Duration(patience))
		return nil
	}
	if err == nil {
		d.end(stepDrain, took, "nothing is left")
	}
	return err
}

// lateError reports a condition that did not hold in time.
type lateError struct{ what string }

func (e *lateError) Error() string {
	return fmt.Sprintf("the demo waited %s for this and gave up: %s", figures.Duration(patience), e.what)
}

// await takes pictures until a condition holds, and returns how long that took.
func (d *stage) await(ctx context.Context, what string, cond func(picture) bool) (time.Duration, error) {
	began := time.Now()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		p, err := d.look(ctx)
		if err != nil {
			return 0, err
		}
		if cond(p) {
			return time.Since(began), nil
		}
		if time.Since(began) > patience {
			return 0, &lateError{what}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// wait pauses so that the user can see the effect of a step.
func (d *stage) wait(ctx context.Context, t time.Duration) error {
	end := time.Now().Add(t)
	_, err := d.await(ctx, "time passes", func(picture) bool { return time.Now().After(end) })
	return err
}

// look takes a picture and shows it. It returns an error if a worker ended without a request from
// the demo.
func (d *stage) look(ctx context.Context) (picture, error) {
	for _, p := range d.processes {
		switch {
		case p.alive():
		case p.life() == stopping:
			p.become(stopped)
		case !p.wasAsked():
			return picture{}, p.failure(d.dir)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := d.watch.look(bounded, d.names()); err != nil {
		return picture{}, err
	}
	d.mu.Lock()
	p := d.watch.picture(d.put, d.processes)
	d.mu.Unlock()
	p.at = time.Since(d.began)
	p.endpoint, p.page = d.server.URL(), d.page
	p.steps = append(p.steps, d.steps...)
	d.options.Show.Picture(p)
	return p, nil
}

func (d *stage) event(format string, args ...any) {
	d.options.Show.Event(time.Since(d.began), fmt.Sprintf(format, args...))
}

func (d *stage) begin(at int, format string, args ...any) {
	d.steps[at].begun = true
	d.event(format, args...)
}

func (d *stage) end(at int, took time.Duration, format string, args ...any) {
	found := fmt.Sprintf(format, args...)
	d.steps[at].done, d.steps[at].took, d.steps[at].found = true, took, found
	d.event("✓ %s: %s (%s)", d.steps[at].text, found, figures.Duration(took))
}

func leads(p picture, name string) string {
	if p.lead() == name {
		return ", the leader,"
	}
	return ""
}

func short(ids []string) string {
	var all []string
	for _, id := range ids {
		all = append(all, shortID(id))
	}
	if len(all) == 1 {
		return "shard " + all[0]
	}
	return "shards " + strings.Join(all, ", ")
}
