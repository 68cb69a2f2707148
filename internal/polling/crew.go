package polling

// crew is the maximum number of concurrent reads. The number that is needed is the read rate times
// the latency. A larger number does not make reads earlier. Each additional read costs a
// connection, and buffers that are no longer in the CPU's caches.
type crew int

const (
	// leastWidth and mostWidth limit the number of concurrent reads. With answers after 20 ms, 256
	// concurrent reads are 12,800 reads per second.
	leastWidth, mostWidth crew = 16, 256
	// firstWidth is the initial number of concurrent reads.
	firstWidth crew = 4
	// lookEvery is the number of ticks between two adjustments of the width.
	lookEvery = 4
)

// look contains measurements of the reads since the last adjustment.
type look struct {
	behind bool    // due reads always waited for longer than a tick
	busy   float64 // average number of concurrent reads, including reads that hang
}

// adjust returns the new width. If reads fall behind, it increases the width by half: Kinesis may
// be slow, calls may hang, or the machine may be busy. Late reads are worse than more goroutines.
// Otherwise adjust reduces the width step by step to one and a half times the busy reads. The
// additional half is needed because all reads of a tick begin together.
func (c crew) adjust(l look) crew {
	if l.behind {
		return min(c+c/2, mostWidth)
	}
	enough := crew(l.busy*1.5) + 2
	return max(min(c, max(enough, c-c/4)), leastWidth)
}
