package sim

import (
	"time"

	"github.com/weir-go/weir"
)

// settings are a seed's choices besides faults: the times that users configure, in true time (see
// [world.options] for a worker's), and the content of the stream.
type settings struct {
	beat, failover, handoff, stop, stall, handler, list, idle time.Duration
	expired                                                   weir.ExpiredPolicy
	batch                                                     int
	lasts                                                     time.Duration
	keys                                                      int
}

// choose draws the settings. Three seeds of ten have weir's default heartbeat interval and failover
// time, all others any valid values. Every other time is drawn independently, so that unexpected
// ratios occur.
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

// scaled scales a time for a failover time of 5 s to this seed's.
func (s *settings) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.failover.Seconds() / 5)
}

// Limits that follow from the settings; clocks may be slow by 4.5 %.

// stopsWithin returns how long all workers may take to stop.
func (s *settings) stopsWithin() time.Duration {
	return (longestHandler + s.stop + 4*s.failover) * 21 / 20
}

// explains returns how long after a fault its consequences may show: a worker that was cut off
// keeps handling its records for as long as it trusts its leases.
func (s *settings) explains() time.Duration { return 5*time.Second + 2*s.failover }

// learnsOfStream returns how long a recreated stream may be mistaken for the old one: until a
// listing shows the difference.
func (s *settings) learnsOfStream() time.Duration {
	return s.list*5/4 + max(10*time.Second, 2*s.failover)
}

// longestHandler limits a handler's duration, including one that ignores its context.
const longestHandler = 70 * time.Second
