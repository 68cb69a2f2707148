package lanes

// queue is a list of lanes, of which any can leave.
type queue struct{ first, last *Lane }

func (q *queue) push(l *Lane) {
	l.before = q.last
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

func (q *queue) remove(l *Lane) {
	if l.before == nil {
		q.first = l.next
	} else {
		l.before.next = l.next
	}
	if l.next == nil {
		q.last = l.before
	} else {
		l.next.before = l.before
	}
	l.before, l.next = nil, nil
}
