package sim

import "container/heap"

// calendar is what will happen, in nanoseconds since the beginning.
type calendar struct {
	entries entries
	count   uint64
}

type entry struct {
	at    int64
	order uint64
	do    func()
}

type entries []entry

func (c *calendar) add(at int64, do func()) {
	c.count++
	heap.Push(&c.entries, entry{at, c.count, do})
}

func (c *calendar) pop() func() { return heap.Pop(&c.entries).(entry).do }

// heap.Interface.
func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = entry{}
	*e = old[:len(old)-1]
	return last
}
