package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// maxConsumersAdvantage is the maximum number of consumers of an on-demand stream in an account
// with the billing commitment.
const maxConsumersAdvantage = 50

// commitment is the account's billing commitment to a minimum throughput.
type commitment struct {
	started, ended time.Time // ended may be in the future
}

// commitmentTerm is the minimum duration of a commitment.
const commitmentTerm = 24 * time.Hour

// enabled reports whether the account has a commitment and no end of it was requested.
func (m *commitment) enabled() bool { return !m.started.IsZero() && m.ended.IsZero() }

func (m *commitment) write(out *codec.Encoder, now time.Time) {
	out.Map()
	out.Key("MinimumThroughputBillingCommitment").Map()
	switch {
	case m.enabled():
		out.Key("Status").Text("ENABLED")
		out.Key("StartedAt").Time(m.started)
		out.Key("EarliestAllowedEndAt").Time(m.started.Add(commitmentTerm))
	case !m.ended.IsZero() && m.ended.After(now):
		out.Key("Status").Text("ENABLED_UNTIL_EARLIEST_ALLOWED_END")
		out.Key("StartedAt").Time(m.started)
		out.Key("EarliestAllowedEndAt").Time(m.ended)
	default:
		out.Key("Status").Text("DISABLED")
		if !m.ended.IsZero() {
			out.Key("StartedAt").Time(m.started)
			out.Key("EndedAt").Time(m.ended)
		}
	}
	out.End()
	out.End()
}

// DescribeAccountSettings returns the account's settings.
type DescribeAccountSettings struct{}

func (*DescribeAccountSettings) Fields() codec.Fields  { return nil }
func (*DescribeAccountSettings) target(*Engine) Target { return Target{} }

func (*DescribeAccountSettings) do(c *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commitment.write(c.out, c.now)
	return nil
}

// UpdateAccountSettings changes the account's settings.
type UpdateAccountSettings struct {
	status optText
	set    bool
}

func (r *UpdateAccountSettings) Fields() codec.Fields {
	return codec.Fields{{Name: "MinimumThroughputBillingCommitment", Into: func(d codec.Decoder) error {
		r.set = true
		return codec.Fields{{Name: "Status", Into: &r.status}}.Decode(d)
	}}}
}

func (*UpdateAccountSettings) target(*Engine) Target { return Target{} }

func (r *UpdateAccountSettings) do(c *call) error {
	var v validator
	if v.required(r.set, "minimumThroughputBillingCommitment") && v.required(r.status.Set, "minimumThroughputBillingCommitment.status") {
		v.enum(r.status, "minimumThroughputBillingCommitment.status", "ENABLED", "DISABLED")
	}
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &c.commitment
	switch {
	case r.status.V == "ENABLED" && !m.enabled():
		// If the end of the commitment is still in the future, the commitment continues. Otherwise
		// a new commitment starts.
		if m.ended.After(c.now) {
			m.ended = time.Time{}
		} else {
			*m = commitment{started: c.now.Truncate(time.Millisecond)}
		}
	case r.status.V == "DISABLED" && m.enabled():
		m.ended = c.now.Truncate(time.Millisecond)
		if earliest := m.started.Add(commitmentTerm); earliest.After(m.ended) {
			m.ended = earliest
		}
	}
	m.write(c.out, c.now)
	return nil
}
