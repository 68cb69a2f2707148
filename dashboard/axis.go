package dashboard

import "time"

// steps contains the distances that ticks of an axis can have.
var steps = []time.Duration{
	10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
}

// mostTicks is the maximum number of distances between the ticks of an axis.
const mostTicks = 7

// axis returns ticks at round times of a time range.
func axis(from, to time.Time) (all []tick) {
	span := to.Sub(from)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if span <= s*mostTicks {
			step = s
			break
		}
	}
	form := "15:04:05"
	switch {
	case span > 36*time.Hour:
		form = "2 Jan 15:04"
	case step%time.Minute == 0:
		form = "15:04"
	}
	at := from.UTC().Truncate(step)
	if at.Before(from) {
		at = at.Add(step)
	}
	for ; !at.After(to); at = at.Add(step) {
		x := float64(at.Sub(from)) / float64(span)
		t := tick{X: place(100*x) + "%", Anchor: "middle", Text: at.Format(form), At: at, Minor: at.UnixNano()/int64(step)%2 == 1}
		switch { // the text stays inside of the picture
		case x < 0.015:
			t.Anchor = "start"
		case x > 0.985:
			t.Anchor = "end"
		}
		all = append(all, t)
	}
	return all
}
