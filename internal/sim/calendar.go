package sim

// calendar is what will happen, in nanoseconds since the beginning.
type calendar struct {
	entries []entry // a heap; one of these is added and taken at each step, so it boxes nothing
	count   uint64
}

type entry struct {
	at    int64
	order uint64
	do    func()
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// next is when the first entry is due. There always is one: of the script, or the end of a stage.
func (c *calendar) next() int64 { return c.entries[0].at }

func (c *calendar) add(at int64, do func()) {
	c.count++
	c.entries = append(c.entries, entry{at, c.count, do})
	e, i := c.entries, len(c.entries)-1
	for i > 0 {
		up := (i - 1) / 2
		if !e[i].before(&e[up]) {
			return
		}
		e[i], e[up] = e[up], e[i]
		i = up
	}
}

func (c *calendar) pop() func() {
	e, last := c.entries, len(c.entries)-1
	do := e[0].do
	e[0], e[last] = e[last], entry{}
	c.entries = e[:last]
	e = c.entries
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
