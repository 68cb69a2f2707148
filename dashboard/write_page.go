package dashboard

import (
	"net/http"
	"slices"

	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// Limits of the page of changes. The command weir has no such limits.
const (
	changeStreams = 50
	changeWorkers = 200
)

// changePage contains the changes that a user can make to an application.
type changePage struct {
	pageHead
	User        string
	Pauses      []pauseRow
	PausesSeen  string
	Workers     []drainRow
	More        int
	Streams     []choice
	Shard       string
	CannotReset string
	MoreStreams int
}

type pauseRow struct {
	What, Stream string
	Paused       bool
	By           string // who paused it and when, or ""
	Do           ActionKind
	Shards       int // that a pause leaves without a reader
}

type drainRow struct {
	workerInfo
	Seen string
	Do   ActionKind
}

// serveChange shows the forms for changes of an application.
func (h *handler) serveChange(w http.ResponseWriter, r *http.Request) {
	if h.opts.Authorize == nil {
		h.show(w, r, http.StatusForbidden, readOnly)
		return
	}
	q := r.URL.Query()
	app := q.Get("app")
	s, w, ok := h.find(w, r, stillHead("Change "+app, app))
	if !ok {
		return
	}
	// Read the application again. With old data, the state in the forms would be outdated, and the
	// write would be refused.
	if fresh, err := h.viewNow(r.Context(), app); err == nil {
		s.view = fresh
	} else {
		s.err = err
	}
	p := changePage{pageHead: stillHead("Change "+app, app), User: h.user(r), PausesSeen: pausesSeen(s.view.Paused), Shard: q.Get("shard")}
	p.age(s)
	names := streamsOf(s.view.Leases)
	for _, name := range append([]string{""}, pausables(names, s.view.Paused)...) {
		row := pauseRow{What: pausable(name), Stream: name, Paused: slices.Contains(s.view.Paused, name), Do: Pause}
		for i := range s.view.Leases {
			if of := &s.view.Leases[i]; !of.Finished() && (name == "" || of.Stream == name) {
				row.Shards++
			}
		}
		if row.Paused {
			row.Do, row.By = Resume, observe.PauseOf(s.view, name).String()
		}
		p.Pauses = append(p.Pauses, row)
	}
	p.MoreStreams = max(0, len(p.Pauses)-1-changeStreams)
	p.Pauses = p.Pauses[:len(p.Pauses)-p.MoreStreams]
	var a application
	a.addWorkers(s)
	for _, of := range a.Workers {
		if of.Ended {
			continue
		}
		row := drainRow{of, drainSeen(&of.Worker), Drain}
		if of.Drain {
			row.Do = EndDrain
		}
		p.Workers = append(p.Workers, row)
	}
	p.More = max(0, len(p.Workers)-changeWorkers)
	p.Workers = p.Workers[:len(p.Workers)-p.More]
	for _, name := range names {
		p.Streams = append(p.Streams, choice{Name: name, Now: name == q.Get("stream")})
	}
	switch {
	case h.opts.Kinesis == nil:
		p.CannotReset = "Without access to Kinesis checkpoints cannot be moved here."
	case h.opts.SaveProgress == nil:
		p.CannotReset = "Checkpoints cannot be moved here, because the page has no place to save the previous progress."
	}
	h.render(w, r, http.StatusOK, "change", p)
}

// pausables returns the streams that are paused or can be paused.
func pausables(streams, paused []string) []string {
	all := slices.Concat(streams, paused)
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// changeLink returns a link to the forms, with the stream and shard of a lease selected. It returns
// "" if changes are not enabled.
func (h *handler) changeLink(app string, of lease.Key) string {
	if h.opts.Authorize == nil {
		return ""
	}
	return link("change", "app", app, "stream", of.Stream, "shard", of.Shard)
}

// show answers with a page that contains only a message.
func (h *handler) show(w http.ResponseWriter, r *http.Request, status int, text string) {
	h.render(w, r, status, "missing", missingPage{stillHead("Nothing to show", ""), text})
}
