package sim

// calendar contains future events, in nanoseconds since the beginning.
type calendar struct {
	entries entries
	// unseen entries are invisible to weir and wake no goroutine. They happen as soon as the driver
	// is awake at their time or later, before later entries. So the driver need not wake up for
	// them.
	unseen entries
	count  uint64
}

type entry struct {
	at    int64
	order uint64
	do    func()
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// next returns when the driver must wake up. There is always such an entry: of the script, or the
// end of a stage.
func (c *calendar) next() int64 { return c.entries[0].at }

func (c *calendar) add(at int64, do func()) {
	c.count++
	c.entries.push(entry{at, c.count, do})
}

func (c *calendar) pop() func() { return c.entries.pop() }

// addUnseen adds an entry that is invisible to weir and adds no further entries.
func (c *calendar) addUnseen(at int64, do func()) {
	c.count++
	c.unseen.push(entry{at, c.count, do})
}

// late reports whether an unseen entry is overdue and first, with its time.
func (c *calendar) late(now int64) (at int64, is bool) {
	if len(c.unseen) == 0 {
		return 0, false
	}
	e := &c.unseen[0]
	return e.at, e.at <= now && e.before(&c.entries[0])
}

// entries are a heap. One is added and taken at each step, so the code avoids boxing.
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
