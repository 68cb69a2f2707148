package polling

// crew is how many reads may be under way at once. So many are needed as they last long: rate times
// latency. More of them than that make no read happen earlier, and each costs a connection and
// buffers that are cold when they are used.
type crew int

const (
	// leastWidth and mostWidth bound how many are made at once. With answers after 20 ms 256 can
	// make 12,800 reads a second.
	leastWidth, mostWidth crew = waveSize, 256
	// firstWidth is how many there are at the very first.
	firstWidth crew = 4
	// lookEvery is after how many ticks the width is looked at.
	lookEvery = 4
)

// look is how reading went for a while.
type look struct {
	behind bool    // due reads have waited for longer than a tick, all the time
	busy   float64 // how many reads were under way at once, on average; those that hang count too
}

// adjust takes a look into account. Who falls behind gets half as many again, be it that the
// service is slow, that calls hang or that the machine is busy: reads that are late are worse than
// goroutines. Who does not gives back, step by step, what goes beyond half as many again as were
// busy: the reads of a tick come all at once.
func (c crew) adjust(l look) crew {
	if l.behind {
		return min(c+c/2, mostWidth)
	}
	enough := crew(l.busy*1.5) + 2
	return max(min(c, max(enough, c-c/4)), leastWidth)
}
