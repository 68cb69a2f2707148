package sim

import "time"

// alarms wake the driver. Those that are set are for times of the calendar, each earlier than the
// one before. One that something else came before stays set until its time has come: to set it
// again would cost a pass over all timers of the simulation.
type alarms struct {
	all []alarm
	set int
}

type alarm struct {
	timer *time.Timer
	at    int64
}

// next returns what fires at a time after now, which is no later than that of any alarm that is
// set.
func (a *alarms) next(at, now int64) <-chan time.Time {
	for a.set > 0 && a.all[a.set-1].at <= now { // it came to be at the time of something else
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

// over takes in that the next has fired.
func (a *alarms) over() { a.set-- }

func (a *alarms) stop() {
	for _, one := range a.all {
		one.timer.Stop()
	}
}
