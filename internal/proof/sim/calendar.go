package sim

// calendar contains the future events. Times are in nanoseconds since the start of the simulation.
type calendar struct {
	entries entries
	// unseen contains events that weir cannot notice and that wake no goroutine. Such an event
	// happens when the driver is next awake, at its time or later, but before later events. The
	// driver need not wake up for it.
	unseen entries
	count  uint64
}

type entry struct {
	at    int64
	order uint64
	do    func()
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// next returns the time at which the driver must wake up. There is always an event: one of the
// script, or the end of a stage.
func (c *calendar) next() int64 { return c.entries[0].at }

func (c *calendar) add(at int64, do func()) {
	c.count++
	c.entries.push(entry{at, c.count, do})
}

func (c *calendar) pop() func() { return c.entries.pop() }

// addUnseen adds an event that weir cannot notice. The event must not add further events.
func (c *calendar) addUnseen(at int64, do func()) {
	c.count++
	c.unseen.push(entry{at, c.count, do})
}

// late reports whether an unseen event is overdue and precedes all other events. It also returns
// the time of that event.
func (c *calendar) late(now int64) (at int64, is bool) {
	if len(c.unseen) == 0 {
		return 0, false
	}
	e := &c.unseen[0]
	return e.at, e.at <= now && e.before(&c.entries[0])
}

// entries is a heap. Each step adds and takes an entry, so the code avoids boxing.
type entries []entry

func (all *entries) push(one entry) {
	e := append(*all, one)
	*all = e
	i := len(e) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e[i].before(&e[up]) {
			return
		}
		e[i], e[up] = e[up], e[i]
		i = up
	}
}

func (all *entries) pop() func() {
	e, last := *all, len(*all)-1
	do := e[0].do
	e[0], e[last] = e[last], entry{}
	e = e[:last]
	*all = e
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < len(e) && e[down+1].before(&e[down]) {
			down++
		}
		if down >= len(e) || !e[down].before(&e[i]) {
			return do
		}
		e[i], e[down] = e[down], e[i]
		i = down
	}
}
