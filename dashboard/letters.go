package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/lease"
)

// Limits of the page of dead letters. The command "weir dead" handles more.
const (
	mostLetters  = 200              // maximum number shown, and retried at once
	lettersBound = 10 * time.Second // time limit for reading the dead letters
)

// lettersPage contains the unhandled dead letters of an application.
type lettersPage struct {
	pageHead
	Of          deadletter.Selection
	Rows        []letterRow
	Groups      []letterGroup
	Place       string // where the dead letters are; "" if unknown
	Payloads    bool
	More        bool
	Unread      int // number of unreadable dead letters
	Err         string
	CannotRetry string
}

// letterRow is one dead letter. The page never shows its key, and its payload only if
// Options.ShowPayloads is set.
type letterRow struct {
	deadletter.Letter
	Name string // short ID of the shard
	Link string // link to the shard
	Text shownPayload
}

// serveLetters shows the dead letters of an application.
func (h *handler) serveLetters(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	app := q.Get("app")
	if err := lease.CheckApp(app); err != nil {
		h.missing(w, r, "This is not the name of an application: "+err.Error())
		return
	}
	if h.opts.Letters == nil {
		h.missing(w, r, "This page does not know where the dead letters are: set --dead, or Options.Letters.")
		return
	}
	p := lettersPage{pageHead: stillHead("Dead letters of "+app, app)}
	p.Of = deadletter.Selection{Stream: q.Get("stream"), Shard: q.Get("shard"), Error: q.Get("error")}
	items, unread, err := h.letters(r.Context(), app, p.Of, mostLetters+1)
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	if p.Unread = unread; err != nil {
		p.Err = err.Error()
	}
	p.More = len(items) > mostLetters
	for _, i := range items[:min(len(items), mostLetters)] {
		row := letterRow{Letter: i.Letter, Name: shortID(i.Shard), Link: link("shard", "app", app, "stream", i.Stream, "shard", i.Shard)}
		if h.opts.ShowPayloads {
			row.Text = payloadOf(i.Data, h.codecs)
		}
		p.Rows = append(p.Rows, row)
	}
	p.Groups, p.Place, p.Payloads = groupLetters(p.Rows), h.opts.LettersPlace, h.opts.ShowPayloads
	if p.Of.Stream+p.Of.Shard+p.Of.Error == "" {
		count := fmt.Sprint(len(p.Rows))
		if p.More || err != nil {
			count = "at least " + count
		}
		h.observer.countLetters(app, count)
	}
	p.Tabs = h.tabs(app, h.observer.last(app), "Dead letters")
	switch {
	case h.opts.RetryLetter == nil:
		p.CannotRetry = `They can be handled again with "weir dead retry".`
	case h.opts.Authorize == nil:
		p.CannotRetry = readOnly
	}
	h.render(w, r, http.StatusOK, "letters", p)
}

// letters returns the first most unhandled dead letters of an application that match a filter.
// unread is the number of unreadable dead letters that letters found before it stopped. After an
// error there may be more dead letters.
func (h *handler) letters(ctx context.Context, app string, of deadletter.Selection, most int) (items []deadletter.Item, unread int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lettersBound)
	defer cancel()
	of.States = []deadletter.State{deadletter.Kept}
	shard := of.Shard // full or short ID
	of.Shard = ""
	for i, err := range h.opts.Letters.Items(ctx) {
		switch {
		case ctx.Err() != nil:
			return items, unread, fmt.Errorf("not all dead letters could be read in %v", lettersBound)
		case err != nil:
			unread++
		case i.App == app && of.Matches(&i) && (shard == "" || shard == i.Shard || shard == shortID(i.Shard)):
			if items = append(items, i); len(items) == most {
				return items, unread, nil
			}
		}
	}
	return items, unread, nil
}

// lettersLink returns a link to the dead letters of a shard. It returns "" if Options.Letters is
// not set.
func (h *handler) lettersLink(app string, of lease.Key) string {
	if h.opts.Letters == nil {
		return ""
	}
	return link("letters", "app", app, "stream", of.Stream, "shard", of.Shard)
}
