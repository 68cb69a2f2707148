package polling

// crew is how many reads may be under way at once. The number needed is the read rate times the
// latency. More than that do not make any read happen earlier, and each costs a connection and
// buffers that are cold when they are used.
type crew int

const (
	// leastWidth and mostWidth limit how many reads are made at once. With answers after 20 ms, 256
	// can make 12,800 reads a second.
	leastWidth, mostWidth crew = waveSize, 256
	// firstWidth is the number at the start.
	firstWidth crew = 4
	// lookEvery is the number of ticks between two looks at the width.
	lookEvery = 4
)

// look describes how reading went for a while.
type look struct {
	behind bool    // due reads have waited for longer than a tick, all the time
	busy   float64 // average number of reads under way at once, including those that hang
}

// adjust returns the width after a look. If reads fall behind, it increases the width by half. The
// service may be slow, calls may hang, or the machine may be busy, and late reads are worse than
// goroutines. Otherwise it reduces the width step by step to one and a half times the busy reads,
// because the reads of a tick come all at once.
func (c crew) adjust(l look) crew {
	if l.behind {
		return min(c+c/2, mostWidth)
	}
	enough := crew(l.busy*1.5) + 2
	return max(min(c, max(enough, c-c/4)), leastWidth)
}
