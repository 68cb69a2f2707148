package source

// crew is how many goroutines may read at once. So many are needed as calls last long: rate times latency. More of them than that make no read
// happen earlier, and each costs a stack, a connection and buffers that are cold when they are used.
type crew struct {
	width int
	tried int // the width before it was made larger, to see whether that pays; 0 if it was not
	rate  int // … and how many reads were finished in a look then
	hold  int // looks for which it is not tried again
	pause int // … as long as the last time
}

const (
	// leastWidth and mostWidth bound how many read at once. With answers after 20 ms 256 can make 12,800 reads a second.
	leastWidth, mostWidth = 4, 256
	// lookEvery is after how many ticks the width is looked at.
	lookEvery = 4
	// leastPause and mostPause are for how many looks a width stays that a larger one was no better than.
	leastPause, mostPause = 10, 80
)

// look is how reading went for a while.
type look struct {
	behind   bool    // due reads have waited for longer than a tick, all the time
	busy     float64 // how many reads were under way at once, on average
	finished int     // reads
}

// adjust takes a look into account. Who falls behind gets twice as many, and keeps them if a third more is finished with them: when it is the
// processor that is short, or the service, more at once only make each slower. Calls that take very long, or hang, are no reason to make others wait.
func (c *crew) adjust(l look) {
	if !l.behind {
		c.tried, c.hold, c.pause = 0, 0, 0
		enough := int(l.busy*1.5) + 2
		c.width = max(min(c.width, max(enough, c.width-c.width/4)), leastWidth)
		return
	}
	switch {
	case l.finished < 2*c.width:
		c.tried = 0
	case c.hold > 0:
		c.hold--
		return
	case c.tried > 0 && l.finished < c.rate+c.rate/3:
		c.width, c.tried = c.tried, 0
		c.pause = min(max(2*c.pause, leastPause), mostPause)
		c.hold = c.pause
		return
	default:
		c.tried, c.rate = c.width, l.finished
	}
	c.width = min(2*c.width, mostWidth)
	if c.width == c.tried {
		c.tried = 0
	}
}
