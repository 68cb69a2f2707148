package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/queuestate"
)

const (
	queuesPoll  = 15 * time.Second // between two updates of a page with queues
	queuesKept  = 30 * time.Second // the metrics cost money, and change once a minute
	queuesBound = 20 * time.Second
	queuesShown = 100
	mostDead    = 50 // dead letters of a queue that are shown
)

// Queue is a Kinesis queue on the page.
type Queue struct {
	Name, ARN string
	Stream    string // the name of its stream
	Status    string // CREATING, ACTIVE, UPDATING or DELETING
	Created   time.Time
	// NoDeadLetters means that the queue keeps no dead letters. Otherwise a record becomes one
	// after MaxReceiveCount receives.
	NoDeadLetters   bool
	MaxReceiveCount int
	Visibility      time.Duration // default time for which a received record is hidden
	Retention       time.Duration // of the stream; 0 if unknown
	StreamMode      string        // ON_DEMAND or PROVISIONED; "" if unknown
	StreamMissing   bool
	Metrics         QueueMetrics
	MetricsErr      string // why Metrics are unknown; "" if they are known
}

// QueueMetrics are the numbers of a queue in CloudWatch.
type QueueMetrics struct {
	At                             time.Time // of the newest numbers of records; zero if there are none
	Visible, InFlight, DeadLetters int64     // records; -1 if unknown

	Over                                  time.Duration // the time that the sums cover
	Received, Acknowledged, EmptyReceives int64         // sums
	NewDeadLetters                        int64         // change of DeadLetters over that time
}

// QueueLetter is a dead letter that a queue keeps itself.
type QueueLetter struct {
	RecordID               string
	Arrived, FirstReceived time.Time
	Receives               int
	Data                   []byte
}

// Queues reads queues for the page.
type Queues interface {
	// Queues returns the queues of the account and region. The page calls it at most every 30 s,
	// and shows a returned error together with the returned queues.
	Queues(context.Context) ([]Queue, error)
	// DeadLetters returns up to most dead letters of a queue. The page calls it when a user opens
	// the dead letters of the queue. The call may hide the dead letters from other processes while
	// it runs.
	DeadLetters(ctx context.Context, arn string, most int) ([]QueueLetter, error)
}

// facts returns the queue in the form of package queuestate.
func (q *Queue) facts() queuestate.Facts {
	return queuestate.Facts{
		Name: q.Name, ARN: q.ARN, Stream: q.Stream, Status: q.Status, Created: q.Created,
		DeadLetters: !q.NoDeadLetters, MaxReceiveCount: q.MaxReceiveCount, Visibility: q.Visibility,
		StreamMissing: q.StreamMissing, StreamMode: q.StreamMode, Retention: q.Retention,
		Metrics: queuestate.Metrics(q.Metrics), MetricsErr: q.MetricsErr,
	}
}

// queueCache shares one read of the queues between requests.
type queueCache struct {
	turn chan struct{} // held by the request that reads; guards the fields
	all  []Queue
	err  error
	at   time.Time
}

// read returns the queues, which are at most queuesKept old.
func (c *queueCache) read(ctx context.Context, from Queues) ([]Queue, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if c.at.IsZero() || time.Since(c.at) >= queuesKept {
		// The answer is for other requests, too, so it does not end with this one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queuesBound)
		defer cancel()
		all, err := from.Queues(ctx)
		if err == nil || len(all) > 0 || c.all == nil {
			c.all = all
		}
		c.err, c.at = err, time.Now()
	}
	return c.all, c.err
}

// queueRow is a queue on the page, with its state.
type queueRow struct {
	Queue
	Class, Word, Link        string
	InView, InFlightNow, Now string // numbers of records for people
	severity                 queuestate.Severity
}

func queueRowOf(q Queue) queueRow {
	r := queueRow{Queue: q, Link: link("queue", "queue", q.Name)}
	r.Word, r.severity = queuestate.State(q.facts())
	r.Class = map[queuestate.Severity]string{queuestate.Error: "stalled", queuestate.Warning: "behind", queuestate.Info: "ok"}[r.severity]
	r.InView, r.InFlightNow, r.Now = amount(q.Metrics.Visible), amount(q.Metrics.InFlight), amount(q.Metrics.DeadLetters)
	return r
}

// amount formats a number of records.
func amount(n int64) string {
	if n < 0 {
		return "not known"
	}
	return queuestate.Count(n)
}

// queueSection is the part of the list of applications about queues.
type queueSection struct {
	On   bool
	Rows []queueRow
	More int
	Err  string
}

// queueRows returns the queues for the list, the worst first.
func (h *handler) queueRows(ctx context.Context) queueSection {
	if h.opts.Queues == nil {
		return queueSection{}
	}
	all, err := h.queues.read(ctx, h.opts.Queues)
	s := queueSection{On: true}
	if err != nil {
		s.Err = errtext.Short(err.Error())
	}
	for _, q := range all {
		s.Rows = append(s.Rows, queueRowOf(q))
	}
	slices.SortStableFunc(s.Rows, func(a, b queueRow) int {
		return cmp.Or(cmp.Compare(a.severity, b.severity), cmp.Compare(a.Name, b.Name))
	})
	if s.More = max(0, len(s.Rows)-queuesShown); s.More > 0 {
		s.Rows = s.Rows[:queuesShown]
	}
	return s
}

// queuePage is the view of a queue.
type queuePage struct {
	pageHead
	Of       queueRow
	Share    string // of the records in flight in the maximum
	Receives string
	Findings []queuestate.Finding
	Err      string // why the queue may have changed
	Look     bool   // the dead letters are shown
	LookLink string
	Letters  []queueLetterRow
	More     bool
	LookErr  string
	Payloads bool
}

type queueLetterRow struct {
	QueueLetter
	Text shownPayload
}

// serveQueue shows a queue, and its dead letters if the query asks for them.
func (h *handler) serveQueue(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("queue")
	if h.opts.Queues == nil {
		h.missing(w, r, "This page does not show queues: set --queues, or Options.Queues.")
		return
	}
	all, err := h.queues.read(r.Context(), h.opts.Queues)
	if r.Context().Err() != nil {
		return
	}
	i := slices.IndexFunc(all, func(q Queue) bool { return q.Name == name })
	switch {
	case i < 0 && err != nil:
		h.missing(w, r, "The queues could not be read: "+errtext.Short(err.Error()))
		return
	case i < 0:
		h.missing(w, r, "The account and region have no queue of this name.")
		return
	}
	q := all[i]
	p := queuePage{pageHead: headOf("Queue "+name, "", queuesPoll), Of: queueRowOf(q), Findings: queuestate.Judge(q.facts())}
	p.Queue = name
	if err != nil {
		p.Err = errtext.Short(err.Error())
	}
	m := &q.Metrics
	if m.InFlight >= 0 {
		p.Share = fmt.Sprintf("%s of %s at most (%d %%)", amount(m.InFlight), amount(queuestate.MaxInFlight), m.InFlight*100/queuestate.MaxInFlight)
	}
	p.Receives = fmt.Sprintf("%s, %s acknowledged, %s without a record", amount(m.Received), amount(m.Acknowledged), amount(m.EmptyReceives))
	p.LookLink, p.Payloads = link("queue", "queue", name, "dead", "1"), h.opts.ShowPayloads
	if p.Look = r.URL.Query().Get("dead") != ""; p.Look {
		p.Poll = 0 // each look receives the dead letters
		h.lookAtDead(r.Context(), &p)
	}
	h.render(w, r, http.StatusOK, "queue", p)
}

// lookAtDead adds the dead letters of the queue to its page.
func (h *handler) lookAtDead(ctx context.Context, p *queuePage) {
	ctx, cancel := context.WithTimeout(ctx, queuesBound)
	defer cancel()
	letters, err := h.opts.Queues.DeadLetters(ctx, p.Of.ARN, mostDead+1)
	if err != nil {
		p.LookErr = errtext.Short(err.Error())
	}
	p.More = len(letters) > mostDead
	for _, l := range letters[:min(len(letters), mostDead)] {
		row := queueLetterRow{QueueLetter: l}
		if h.opts.ShowPayloads {
			row.Text = payloadOf(l.Data, h.codecs)
		}
		p.Letters = append(p.Letters, row)
	}
}
