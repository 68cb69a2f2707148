package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

const (
	planBound = 30 * time.Second // time limit for planning a reset
	planGood  = 10 * time.Minute // how long a preview stays valid
	mostSteps = 200              // maximum number of rows in the table of steps
	mostSaid  = 5                // maximum number of sentences about changes

	roomForNames = 16 << 10 // bytes of a form for everything except the leases
)

// resetPlan contains the effects that a reset would have.
type resetPlan struct {
	view  lease.View
	now   time.Time // the service's time that the plan uses
	steps []change.Step
	moves int
	past  past // the history of the shards
	notes []string
	runs  []string // workers that are running, or may be
}

// plan computes the effects that a reset would have now. shown is zero, or the service's time in a
// preview. If it is set, plan uses that time, so that the reset does exactly what the preview
// showed.
func (h *handler) plan(ctx context.Context, a Action, shown time.Time) (resetPlan, error) {
	var p resetPlan
	wish, ago, err := change.ParseTo(a.To)
	switch {
	case h.opts.Kinesis == nil:
		return p, refuse(http.StatusConflict, "Without access to Kinesis this page cannot move checkpoints: it needs the shards of a stream and its clock.")
	case h.opts.SaveProgress == nil:
		return p, refuse(http.StatusConflict, "This page cannot move checkpoints, because it has no place to save the previous progress (Options.SaveProgress).")
	case err != nil:
		return p, refuse(http.StatusBadRequest, "%v", err)
	case wish.To.Kind() == shard.Sequence:
		return p, refuse(http.StatusBadRequest, `This page accepts oldest, latest, a time, or a duration such as 15m. For a sequence number use "weir group reset".`)
	case a.Shard != "" && a.Stream == "":
		return p, refuse(http.StatusBadRequest, "A shard belongs to a stream: choose the stream as well.")
	}
	wish.Shard = a.Shard
	// Earlier reads show which workers are running.
	s, err := h.observer.look(ctx, a.App, time.Hour)
	if err != nil {
		return p, err
	}
	if p.view, err = h.viewNow(ctx, a.App); err != nil {
		return p, err
	}
	p.past = s.past
	p.runs = running(s, p.view, time.Now())
	names := streamsOf(p.view.Leases)
	if a.Stream != "" {
		if !slices.Contains(names, a.Stream) {
			return p, refuse(http.StatusNotFound, "%s has no leases of a stream %s.", a.App, a.Stream)
		}
		names = []string{a.Stream}
	}
	if len(names) == 0 {
		return p, refuse(http.StatusConflict, "%s has no leases.", a.App)
	}
	var known []operate.Answer
	for _, name := range names {
		about, err := operate.AskStream(ctx, h.opts.Kinesis, streams.Stream{Name: name})
		if err != nil {
			return p, refuse(http.StatusBadGateway, "Stream %s could not be described, so nothing was changed: %v", name, err)
		}
		known = append(known, about)
		if p.now.IsZero() || about.Now.Before(p.now) {
			p.now = about.Now
		}
	}
	if !shown.IsZero() {
		if shown.After(p.now.Add(time.Second)) || shown.Before(p.now.Add(-planGood)) {
			return p, refuse(http.StatusConflict, "The plan was shown more than %s ago: look at it again.", short(planGood))
		}
		p.now = shown
	}
	if ago != nil {
		wish.To = shard.At(p.now.Add(-*ago))
	}
	for _, about := range known {
		about.Now = p.now
		if err := p.add(about, wish); err != nil {
			return p, refuse(http.StatusConflict, "%v", err)
		}
	}
	return p, nil
}

// add adds the effects on one stream.
func (p *resetPlan) add(about operate.Answer, wish change.Wish) error {
	if about.Denied != nil {
		p.notes = append(p.notes, fmt.Sprintf("The creation time of stream %s is unknown: %v", about.Name, about.Denied))
	}
	if wish.To.Kind() == shard.Time && about.Retention > 0 && wish.To.Time().Before(p.now.Add(-about.Retention)) {
		p.notes = append(p.notes, fmt.Sprintf("The retention of stream %s is %s: reading begins with the oldest record in it.", about.Name, short(about.Retention)))
	}
	steps, err := change.Reset(about.Stream, p.view.Leases, wish)
	if err != nil {
		return err
	}
	p.steps = append(p.steps, steps...)
	for _, s := range steps {
		if len(s.Actions) > 0 {
			p.moves++
		}
	}
	return nil
}

// running returns the workers that may be alive. A worker is dead only if its heartbeat count did
// not change during the failover time.
func running(s sighting, now lease.View, at time.Time) []string {
	var names []string
	for i := range now.Workers {
		w := &now.Workers[i]
		switch l := lifeOf(*w, s.beats[w.Session].see(*w, at)); l {
		case lifeEnded, lifeSilent:
		case lifeUnknown:
			names = append(names, nameOf(w)+" (whether it runs is not known yet)")
		default:
			names = append(names, nameOf(w))
		}
	}
	slices.Sort(names)
	return names
}

type resetPage struct {
	pageHead
	It      Action
	Steps   []stepRow
	More    int
	Summary string
	Notes   []string
	Running string // names of running workers
	Moves   int
	Seen    string
	Clock   int64 // the service's time of the plan, in Unix milliseconds
}

type stepRow struct{ Stream, Shard, From, To, Why string }

// serveReset shows the effects of a reset, with a form that carries the reset out.
func (h *handler) serveReset(w http.ResponseWriter, r *http.Request) {
	if h.opts.Authorize == nil {
		h.show(w, r, http.StatusForbidden, readOnly)
		return
	}
	q := r.URL.Query()
	q.Set("do", string(Reset))
	a, err := actionOf(q)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), planBound)
		defer cancel()
		var plan resetPlan
		if plan, err = h.plan(ctx, a, time.Time{}); err == nil {
			p := resetPageOf(a, plan)
			if len(url.QueryEscape(strings.ReplaceAll(p.Seen, "\n", "\r\n"))) < mostForm-roomForNames {
				h.render(w, r, http.StatusOK, "reset", p)
				return
			}
			err = refuse(http.StatusConflict, `%d leases would move, which is more than a form can carry: choose a stream, or use "weir group reset".`, plan.moves)
		}
	}
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	why := refusal{http.StatusBadGateway, err.Error()}
	errors.As(err, &why)
	h.show(w, r, why.status, why.text)
}

func resetPageOf(a Action, plan resetPlan) resetPage {
	p := resetPage{pageHead: stillHead("Reset "+a.App, a.App), It: a, Moves: plan.moves, Notes: plan.notes,
		Running: inWords(plan.runs), Seen: stepsSeen(plan.steps), Clock: plan.now.UnixMilli()}
	for _, s := range plan.steps[:min(len(plan.steps), mostSteps)] {
		row := stepRow{s.Stream, shortID(s.Shard), placeInWords(s.From, plan.now), placeInWords(s.To, plan.now), s.Why}
		if s.From.IsZero() {
			row.From = "no lease"
		}
		if len(s.Actions) == 0 {
			row.To = "stays"
		}
		p.Steps = append(p.Steps, row)
	}
	p.More = len(plan.steps) - len(p.Steps)
	p.Summary = fmt.Sprintf("%d %s would move to %s. Nothing is changed yet.", plan.moves, plural(plan.moves, "checkpoint", "checkpoints"), a.To)
	if text := plan.past.amountInWords(plan.steps, plan.now); text != "" {
		p.Summary += " " + text
	}
	if plan.moves == 0 {
		p.Summary = "All checkpoints are there already: nothing would move."
	}
	return p
}

// reset carries out the reset that a preview showed.
func (h *handler) reset(ctx context.Context, r *http.Request, a Action) (text string, notes []string, err error) {
	form := r.PostForm
	clock, err := strconv.ParseInt(form.Get("clock"), 10, 64)
	if err != nil || clock <= 0 {
		return "", nil, refuse(http.StatusBadRequest, "The form does not say when the plan was shown: look at the plan first.")
	}
	seen, err := parseSteps(form.Get("seen"))
	if err != nil {
		return "", nil, refuse(http.StatusBadRequest, "The form has no valid plan: %v", err)
	}
	plan, err := h.plan(ctx, a, time.UnixMilli(clock))
	if err != nil {
		return "", nil, err
	}
	if said := stepsChanged(seen, plan.steps, plan.view.Leases); len(said) > 0 {
		more := len(said) - mostSaid
		if more > 0 {
			said = append(said[:mostSaid], fmt.Sprintf("The same applies to %d more.", more))
		}
		return "", nil, refuse(http.StatusConflict, "The leases have changed since the plan was shown, so nothing was moved. %s", strings.Join(said, " "))
	}
	if len(plan.runs) > 0 && form.Get("running") == "" {
		return "", nil, refuse(http.StatusConflict, "Workers run: %s. Stop them first, or choose that they lose the leases.", inWords(plan.runs))
	}
	if plan.moves == 0 {
		return "All checkpoints were there already.", nil, nil
	}
	var progress bytes.Buffer
	if err := dump.Write(&progress, dump.Of(a.App, plan.view)); err != nil {
		return "", nil, refuse(http.StatusInternalServerError, "Nothing was moved, because the present progress cannot be encoded: %v", err)
	}
	place, err := h.opts.SaveProgress(ctx, a.App, progress.Bytes())
	if err != nil {
		return "", nil, refuse(http.StatusInternalServerError, "Nothing was moved, because the present progress could not be saved: %v", err)
	}
	notes = []string{
		fmt.Sprintf(`The previous progress is in %s; "weir group import --replace" restores it.`, place),
		"Handlers that get their start position from a sink follow the sink, not these checkpoints.",
	}
	// Log the start too, because the process may end before it can log the result.
	h.logger().LogAttrs(ctx, slog.LevelInfo, "page: checkpoints begin to move", append(h.attrs(r, a), slog.String("saved", place))...)
	out := operate.CarryOut(ctx, h.observer.store, a.App, plan.steps, nil)
	text = fmt.Sprintf("%d of %d %s moved to %s.", out.Done, plan.moves, plural(plan.moves, "checkpoint", "checkpoints"), a.To)
	if out.Left == 0 {
		return text, notes, nil
	}
	for _, s := range plan.steps {
		if state := out.State[s.Key]; state == operate.Meanwhile || state == operate.Left {
			notes = append(notes, fmt.Sprintf("%s/%s: %s", s.Stream, shortID(s.Shard), state))
			if len(notes) > 10 {
				break
			}
		}
	}
	why := "The others changed while this ran."
	if out.Err != nil {
		why = fmt.Sprintf("Then: %v.", out.Err)
	}
	return text, notes, refuse(http.StatusConflict, "%s %s Look at the plan again for the rest.", text, why)
}
