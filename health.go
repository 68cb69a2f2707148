package weir

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/probe"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Live returns an error if a restart of the process would help: the heartbeats are stuck, handlers
// ignore the end of their contexts, or Run has returned. It returns nil during an outage of the
// store or of the service, while a handler fails or is slow, and before Run. Live and Ready are
// cheap and may be called at any time.
func (c *Consumer) Live() error {
	now, times := time.Now(), c.opts.times()
	workers, returned := c.runs.Workers()
	var all []error
	if len(workers) == 0 && returned {
		all = append(all, errors.New("Run has returned"))
	}
	for i := range workers {
		all = append(all, workers[i].Dead(now, times)...)
	}
	return errors.Join(all...)
}

// Ready returns nil while this worker takes part in its application: it has joined and is not
// stopping, and the store has answered within Options.Timing.FailoverAfter. A leader also has to be
// able to list the shards of each stream: Ready returns an error when that has failed for a minute.
// The error says which condition is not met.
func (c *Consumer) Ready() error {
	now, times := time.Now(), c.opts.times()
	workers, _ := c.runs.Workers()
	var all []error
	if len(workers) == 0 {
		all = append(all, errors.New("Run was not called, or has returned"))
	}
	for i := range workers {
		all = append(all, workers[i].Unready(now, times)...)
	}
	return errors.Join(all...)
}

// StoreAnswered returns the time at which this worker sent the last heartbeat that the store has
// answered. It is zero before the first answer, and after Run has returned. StoreAnswered may be
// called at any time.
func (c *Consumer) StoreAnswered() (last time.Time) { return c.runs.StoreAnswered() }

// Health returns a verdict on each shard that this consumer holds, the worst first, and one verdict
// on all of them together. It uses the rules of package health, as the weir command, the metrics
// exporter and the web page do. Lags and reasons are known at once. To tell whether a lag falls,
// and since when a shard stands still, Health needs several observations over some minutes. Each
// call is one observation, so let metrics or probes call it regularly. Health does not report that
// a shard is close to the end of retention, because a consumer does not know the retention of a
// stream. It may be called concurrently.
func (c *Consumer) Health() (health.Application, []health.Named) {
	return c.rate(time.Now(), c.Shards())
}

// rate adds an observation of each shard, and rates the shards and the application.
func (c *Consumer) rate(now time.Time, shards []ShardStatus) (health.Application, []health.Named) {
	all := make([]supervise.Observed, 0, len(shards))
	own, cutOff := c.runs.CutOff(now)
	for i := range shards {
		s := &shards[i]
		if s.Reason == health.Abandoned { // it may be another worker's
			continue
		}
		o := s.observation(c.opts.Worker, now)
		if since := now.Add(-own.For); cutOff && supervise.Explains(s.Reason) {
			o.Complains, o.Reason, o.Since, o.Err = true, health.CutOff, since, own.Why
		}
		all = append(all, supervise.Observed{
			Key: lease.Key{Stream: s.Stream, Shard: s.Shard}, Epoch: s.Epoch, Observation: o,
		})
	}
	return c.judge.Judge(all, now)
}

// observation returns the current observation of a shard.
func (s *ShardStatus) observation(worker string, now time.Time) health.Observation {
	o := health.Observation{
		At: now, Handled: s.At, Saved: s.Saved, ReadLag: s.ReadLag, HandledLag: s.HandledLag, SavedLag: s.SavedLag,
		Owner: cmp.Or(worker, "this worker"), Reason: s.Reason, Since: s.Since, Attempts: s.Attempt, Held: s.Held, Expired: s.Expired,
	}
	if s.Err != nil {
		o.Err = s.Err.Error()
	}
	return o
}

// HealthHandler returns an HTTP handler that serves [Consumer.Live] under paths that end in /livez,
// and [Consumer.Ready] under paths that end in /readyz. The status is 200 or 503. The JSON body
// says whether the check passed, why not, how many shards this worker holds, and the
// [health.Verdict] on them: state, cause and next steps. The verdict does not change the status,
// because a restart does not reduce lag. Reasons and verdict contain only the names of the
// application, streams and shards, words of package health, numbers and times.
//
// Other paths get 404, and methods other than GET and HEAD get 405. On a connection to a loopback
// address, requests for a host name other than localhost get 403, because a web page may have
// pointed that name at this machine. The answer contains nothing from the request.
func (c *Consumer) HealthHandler() http.Handler {
	return probe.Handler(func() (any, bool) { return c.healthAnswer(c.Live()) }, func() (any, bool) { return c.healthAnswer(c.Ready()) })
}

// healthAnswer returns the body of an answer to a health check with the result err, and whether the
// check passed.
func (c *Consumer) healthAnswer(err error) (answer healthAnswer, ok bool) {
	answer = healthAnswer{OK: err == nil, Reasons: []string{}, Shards: len(c.runs.Loops()), Verdict: c.verdict(true)}
	if err != nil {
		answer.Reasons = reasons(err)
	}
	return answer, err == nil
}

type healthAnswer struct {
	OK      bool           `json:"ok"`
	Reasons []string       `json:"reasons"`
	Shards  int            `json:"shards"`
	Verdict health.Verdict `json:"verdict"`
}

// longTrouble is how long a trouble lasts before it can be a cause. Workers report it to the store
// after the same time.
const longTrouble = 10 * time.Second

// Verdict returns the verdict on all shards that this consumer holds: the state, since when, the
// cause and the next steps. It contains texts of errors, which can come from the handler. Like
// [Consumer.Health], each call is one observation. It may be called concurrently.
func (c *Consumer) Verdict() health.Verdict { return c.verdict(false) }

// verdict returns the verdict on the shards of this consumer.
func (c *Consumer) verdict(hideErrors bool) health.Verdict {
	now, shards := time.Now(), c.Shards()
	f := health.Facts{App: c.opts.App, Now: now, HideErrors: hideErrors}
	if last := c.StoreAnswered(); !last.IsZero() && now.Sub(last) >= c.opts.times().Failover {
		f.StoreSilent = last
	}
	own, cutOff := c.runs.CutOff(now)
	rates := map[lease.Key]float64{}
	for _, l := range c.runs.Loops() {
		rates[l.Key()] = l.Rate(now)
	}
	status := make(map[lease.Key]*ShardStatus, len(shards))
	for i := range shards {
		status[lease.Key{Stream: shards[i].Stream, Shard: shards[i].Shard}] = &shards[i]
	}
	_, all := c.rate(now, shards)
	for _, of := range all {
		key := lease.Key{Stream: of.Stream, Shard: of.Name}
		s := health.ShardFacts{Named: of, Load: -1, Recent: c.runs.Recent(key)}
		is := status[key]
		lasts := is.Reason.Trouble() && now.Sub(is.Since) >= longTrouble
		if lasts || is.Attempt > 0 {
			s.Doing, s.DoingSince, s.Attempts = is.Reason, is.Since, is.Attempt
		}
		if s.State == health.Stalled && !of.Since.IsZero() && of.Since.Before(s.DoingSince) {
			s.DoingSince = of.Since // the wait began again after each attempt
		}
		if cutOff && supervise.Explains(is.Reason) {
			s.Doing, s.DoingSince, s.CutOff = health.CutOff, now.Add(-own.For), true
		}
		if rate, known := rates[key]; known {
			s.Load = rate
		}
		f.Shards = append(f.Shards, s)
	}
	return health.Conclude(f)
}

// reasons returns the texts of joined errors.
func reasons(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range joined.Unwrap() {
		all = append(all, e.Error())
	}
	return all
}
