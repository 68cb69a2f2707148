package producer

// list is a list of records, linked by their field next.
type list struct {
	first, last *Pending
	n, bytes    int
}

// push appends a record.
func (l *list) push(p *Pending) {
	p.next = nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.n++
	l.bytes += p.size()
}

// remove removes the record after before, or the first one if before is nil.
func (l *list) remove(before *Pending) *Pending {
	p := l.first
	if before == nil {
		l.first = p.next
	} else {
		p = before.next
		before.next = p.next
	}
	if l.last == p {
		l.last = before
	}
	p.next = nil
	l.n--
	l.bytes -= p.size()
	return p
}

// pop removes the first record.
func (l *list) pop() *Pending { return l.remove(nil) }

// merge moves all records of other into l, by number. Both lists are sorted by number.
func (l *list) merge(other *list) {
	if l.first == nil || other.first == nil || l.last.number < other.first.number {
		l.join(other)
		return
	}
	var merged list
	for l.first != nil && other.first != nil {
		if l.first.number < other.first.number {
			merged.push(l.pop())
		} else {
			merged.push(other.pop())
		}
		if other.first != nil && other.last.number < l.firstNumber() {
			merged.join(other)
		}
	}
	merged.join(l)
	merged.join(other)
	*l = merged
}

// firstNumber returns the number of the first record, or 0.
func (l *list) firstNumber() uint64 {
	if l.first == nil {
		return 0
	}
	return l.first.number
}

// join appends all records of other. Afterwards other is empty.
func (l *list) join(other *list) {
	switch {
	case other.first == nil:
		return
	case l.first == nil:
		l.first = other.first
	default:
		l.last.next = other.first
	}
	l.last = other.last
	l.n += other.n
	l.bytes += other.bytes
	*other = list{}
}
