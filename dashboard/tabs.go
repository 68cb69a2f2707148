package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// tab is a link to a view of an application, with the number of its entries.
type tab struct {
	Name, Link, Count string
	Now               bool
}

// tabs returns the links to the views of an application. now is the name of the present view.
func (h *handler) tabs(app string, s sighting, now string) []tab {
	open := 0
	for i := range s.view.Leases {
		if !s.view.Leases[i].Finished() {
			open++
		}
	}
	workers := fmt.Sprint(s.group.Living)
	if s.err != nil {
		workers = "not known"
	}
	if n := len(s.died()); n > 0 {
		workers += fmt.Sprintf(", %d died", n)
	}
	all := []tab{
		{"Shards", link("app", "app", app), fmt.Sprint(open), false},
		{"Workers", link("app", "app", app) + "#workers", workers, false},
		{"Events", link("events", "app", app), fmt.Sprint(len(s.told.events)), false},
	}
	if to := h.lettersLink(app, lease.Key{}); to != "" {
		count := ""
		if n, known := h.observer.countedLetters(app); known {
			count = n
		}
		all = append(all, tab{"Dead letters", to, count, false})
	}
	for i := range all {
		if s.at.IsZero() && all[i].Name != "Dead letters" {
			all[i].Count = "" // the application was not read yet
		}
		all[i].Now = all[i].Name == now
	}
	return all
}

// countLetters keeps the number of dead letters that the page of dead letters found.
func (o *observer) countLetters(app, count string) {
	w := o.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	w.letters = count
}

// countedLetters returns the number of dead letters that the page of dead letters last found.
func (o *observer) countedLetters(app string) (count string, known bool) {
	w := o.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	return w.letters, w.letters != ""
}

// death is the death of a worker, as the history or the store shows it.
type death struct {
	Name, Session string
	At            time.Time // zero if unknown
	Shards        int       // that other workers took
}

// died returns the workers that died lately, the last one first. The history covers three hours.
func (s sighting) died() []death {
	all := map[string]death{}
	for session, d := range s.past.deaths {
		all[session] = d
	}
	for _, w := range s.view.Workers {
		d := all[w.Session]
		switch {
		case s.group.Lives(w.Session):
			delete(all, w.Session) // it lost shards, but lives
		case w.Leaving:
		case w.Ended || lifeOf(w, s.beats[w.Session]) == lifeSilent:
			d.Name, d.Session = nameOf(&w), w.Session
			if d.At.IsZero() && !w.Ended {
				d.At = s.beats[w.Session].first
			}
			d.addEvents(s.told.events)
			all[w.Session] = d
		}
	}
	var sorted []death
	for _, d := range all {
		sorted = append(sorted, d)
	}
	slices.SortFunc(sorted, func(a, b death) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return compareNames(a, b)
	})
	return sorted
}

// addEvents adds what the events show, for a worker that the history does not show as dead.
func (d *death) addEvents(events []event) {
	seen := d.Shards > 0
	for _, e := range events {
		switch {
		case len(e.workers) == 0 || e.workers[0] != d.Name || e.over:
		case e.kind == deathEvent && d.At.IsZero():
			d.At = e.at
		case e.kind == handoverEvent && !seen && strings.Contains(e.text, "which died"):
			d.Shards += len(e.shards)
		}
	}
}

func compareNames(a, b death) int {
	if a.Name+a.Session < b.Name+b.Session {
		return -1
	}
	return 1
}

// addDeaths sets the deaths that the history shows.
func (p *past) addDeaths() {
	p.deaths = map[string]death{}
	for _, all := range p.shards {
		for _, h := range happenings(all) {
			if h.what != takenOver {
				continue
			}
			d := p.deaths[h.from]
			d.Name, d.Session, d.Shards = p.name(h.from), h.from, d.Shards+1
			if at := time.Unix(60*h.minute, 0).UTC(); d.At.IsZero() || at.Before(d.At) {
				d.At = at
			}
			p.deaths[h.from] = d
		}
	}
}
