package sim

import (
	"time"

	"github.com/weir-go/weir"
)

// settings contains the choices of a seed, except for faults. They are the times that users
// configure, and the content of the stream. The times are in true time; [world.options] converts
// them for a worker.
type settings struct {
	beat, failover, handoff, stop, stall, handler, list, idle time.Duration
	expired                                                   weir.ExpiredPolicy
	batch                                                     int
	lasts                                                     time.Duration
	keys                                                      int
}

// choose chooses random settings. Three of ten seeds use weir's default heartbeat interval and
// failover time, and the others random ones. Most other times do not depend on these two, so that
// unusual ratios occur.
func choose(d *dice, p Profile) settings {
	s := settings{
		beat: time.Second, failover: 5 * time.Second, handoff: 30 * time.Second, stop: 30 * time.Second, stall: 2 * time.Minute,
		list: time.Minute, idle: time.Second, batch: 10000, lasts: d.span(p.Lasts[0], p.Lasts[1]), keys: 3 + d.below(30),
	}
	if !d.chance(.3) {
		s.beat = d.span(500*time.Millisecond, 5*time.Second)
		beats := d.span(5*s.beat, 10*s.beat)
		if d.chance(.25) { // the minimum
			beats = d.span(3*s.beat, 5*s.beat)
		}
		s.failover = min(beats, max(30*time.Second, 5*s.beat))
		s.handoff = max(s.handoff, s.failover)
	}
	if d.chance(.3) {
		s.handoff = max(s.beat, d.span(5*time.Second, 15*time.Second))
	}
	if d.chance(.3) {
		s.stop = d.span(time.Second, 10*time.Second)
	}
	if d.chance(.3) {
		s.batch = 2 + d.below(5)
	}
	if d.chance(.4) {
		s.list = d.span(5*time.Second, 2*time.Minute)
	}
	if d.chance(.3) {
		s.stall = d.span(35*time.Second, 3*time.Minute)
	}
	if d.chance(.2) {
		s.handler = d.span(10*time.Second, 40*time.Second)
	}
	if !d.chance(.1) {
		s.idle = d.span(p.Idle[0], p.Idle[1])
	}
	if p.Rates[Trim] > 0 {
		s.expired = weir.OldestExpired
	}
	return s
}

// scaled scales a time that is meant for a failover time of 5 s to the failover time of this seed.
func (s *settings) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.failover.Seconds() / 5)
}

// The following limits result from the settings. Clocks may be slow by 4.5 %.

// stopsWithin returns how long all workers may take to stop.
func (s *settings) stopsWithin() time.Duration {
	return (longestHandler + s.stop + 4*s.failover) * 21 / 20
}

// explains returns how long after a fault its consequences may appear. A worker that was cut off
// handles its records for as long as its leases are valid.
func (s *settings) explains() time.Duration { return 5*time.Second + 2*s.failover }

// learnsOfStream returns how long a recreated stream may be mistaken for the old one. That ends
// when a listing shows the difference.
func (s *settings) learnsOfStream() time.Duration {
	return s.list*5/4 + max(10*time.Second, 2*s.failover)
}

// longestHandler is the maximum duration of a handler, even if it ignores its context.
const longestHandler = 70 * time.Second
