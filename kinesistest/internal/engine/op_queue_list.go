package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// ListQueues lists the queues of the account, sorted by name.
type ListQueues struct {
	limit   optInt
	token   optText
	filters []queueFilter
	set     bool
}

// queueFilter selects the queues of one stream.
type queueFilter struct {
	streamRef
	created codec.Opt[time.Time]
}

func (r *ListQueues) Fields() codec.Fields {
	return codec.Fields{
		{Name: "MaxResults", Into: &r.limit},
		{Name: "NextToken", Into: &r.token},
		{Name: "StreamFilter", Into: func(d codec.Decoder) error {
			r.set, r.filters = true, nil
			if err := codec.Expect(d, codec.TypeList); err != nil {
				return err
			}
			return d.Array(func() error {
				var f queueFilter
				err := codec.Fields{{Name: "StreamARN", Into: &f.arn}, {Name: "StreamCreationTimestamp", Into: &f.created}}.Decode(d)
				r.filters = append(r.filters, f)
				return err
			})
		}},
	}
}

func (r *ListQueues) target(*Engine) Target {
	if len(r.filters) == 1 {
		return Target{Stream: r.filters[0].stream()}
	}
	return Target{}
}

func (r *ListQueues) check() error {
	var v validator
	v.intRange(r.limit, "maxResults", 1, 10_000)
	if r.set {
		v.lengthOf(len(r.filters), func() string { return "[]" }, "streamFilter", 1, 10_000)
	}
	for i := range r.filters {
		r.filters[i].validateARN(&v)
	}
	return v.err()
}

// matches reports whether a filter selects q.
func (r *ListQueues) matches(q *queue) bool {
	return !r.set || slices.ContainsFunc(r.filters, func(f queueFilter) bool {
		return f.arn.V == q.stream.arn && (!f.created.Set || f.created.V.Truncate(time.Second).Equal(q.stream.created.Truncate(time.Second)))
	})
}

func (r *ListQueues) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	after := ""
	if r.token.Set {
		t, err := c.openPage(c.now, queuesTicket, r.token.V)
		if err != nil {
			return err
		}
		after = t.text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*queue
	for _, q := range c.queues {
		if q.name > after && r.matches(q) && c.settleQueue(q, c.now) {
			found = append(found, q)
		}
	}
	slices.SortFunc(found, func(a, b *queue) int { return strings.Compare(a.name, b.name) })
	limit := pageSize(r.limit, 100)
	out := c.out
	out.Map()
	out.Key("QueueSummaries").Array(min(limit, len(found)))
	for _, q := range found[:min(limit, len(found))] {
		out.Elem().Map()
		writeQueue(out, q)
		out.Key("Streams").Array(1)
		out.Elem().Map()
		out.Key("StreamARN").Text(q.stream.arn)
		out.Key("StreamCreationTimestamp").Time(q.stream.created)
		out.End()
		out.End()
		out.End()
	}
	out.End()
	if len(found) > limit {
		out.Key("NextToken").Text(c.sealer.seal(ticket{kind: queuesTicket, issued: c.now, text: found[limit-1].name}))
	}
	out.End()
	return nil
}
