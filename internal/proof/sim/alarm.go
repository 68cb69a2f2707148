package sim

import "time"

// alarms wakes the driver at times of the calendar. Each new alarm is earlier than the previous
// one. An alarm stays set if an earlier event happens first. Setting it again would cost a pass
// over all timers of the simulation.
type alarms struct {
	all []alarm
	set int
}

type alarm struct {
	timer *time.Timer
	at    int64
}

// next returns a channel that fires at the time at. The caller makes sure that no alarm is set for
// a time between now and that time.
func (a *alarms) next(at, now int64) <-chan time.Time {
	for a.set > 0 && a.all[a.set-1].at <= now { // another event happened at its time
		a.set--
	}
	if a.set == 0 || a.all[a.set-1].at != at {
		if d := time.Duration(at - now); a.set == len(a.all) {
			a.all = append(a.all, alarm{time.NewTimer(d), at})
		} else {
			a.all[a.set].timer.Reset(d)
			a.all[a.set].at = at
		}
		a.set++
	}
	return a.all[a.set-1].timer.C
}

// over notes that the earliest alarm has fired.
func (a *alarms) over() { a.set-- }

func (a *alarms) stop() {
	for _, one := range a.all {
		one.timer.Stop()
	}
}
