// Package put sends records to a stream in the order of each partition key, even if the service
// refuses some.
package put

// The limits of one PutRecords request that weir keeps to. The service takes up to 10 MiB by now;
// older servers 5.
const (
	MaxRecords = 500
	MaxBytes   = 5 << 20
)

// Entry is one record on its way to a stream.
type Entry struct {
	Data []byte
	Key  string
	Line int64 // its place in the input, from 1, rising
}

// Size is the number of bytes that an entry counts against the limits of the service.
func (e Entry) Size() int { return len(e.Data) + len(e.Key) }

// Queue holds the entries that the service has not accepted yet, in the order of the input, and
// chooses those of the next request.
//
// PutRecords keeps no order inside a request: it may refuse a record and take the next one of the
// same key. So a request holds one record of each key, the oldest, and a refused record is sent
// again before anything newer of its key. With Loose a request holds the oldest entries, even
// several of one key, so the order of a key can change.
type Queue struct {
	Loose bool

	entries []waiting
	bytes   int
	added   int64 // entries ever
	last    int64 // the line of the newest of them
	keys    map[string]struct{}
}

type waiting struct {
	Entry
	before int64 // entries that were added before this one
}

// Add appends an entry.
func (q *Queue) Add(e Entry) {
	q.entries = append(q.entries, waiting{e, q.added})
	q.added++
	q.bytes += e.Size()
	q.last = e.Line
}

// Len is the number of entries that wait.
func (q *Queue) Len() int { return len(q.entries) }

// Bytes is the size of the entries that wait.
func (q *Queue) Bytes() int { return q.bytes }

// Through is the line up to which everything was taken.
func (q *Queue) Through() int64 {
	if len(q.entries) > 0 {
		return q.entries[0].Line - 1
	}
	return q.last
}

// Beyond is the number of accepted entries after that line.
func (q *Queue) Beyond() int64 {
	if len(q.entries) == 0 {
		return 0
	}
	taken := q.added - int64(len(q.entries))
	return taken - q.entries[0].before
}

// Next returns the indices of the entries for the next request, rising. An entry that is too large
// for any request is the caller's mistake; it goes alone.
func (q *Queue) Next() []int {
	if q.keys == nil {
		q.keys = make(map[string]struct{}, MaxRecords)
	}
	clear(q.keys)
	var picked []int
	size := 0
	for i, e := range q.entries {
		if !q.Loose {
			if _, taken := q.keys[e.Key]; taken {
				continue
			}
		}
		if len(picked) == MaxRecords || (len(picked) > 0 && size+e.Size() > MaxBytes) {
			break
		}
		q.keys[e.Key] = struct{}{}
		picked = append(picked, i)
		size += e.Size()
	}
	return picked
}

// Entry returns the entry of an index that Next gave.
func (q *Queue) Entry(i int) Entry { return q.entries[i].Entry }

// Done removes those of the picked entries that the service took; the others keep their places.
func (q *Queue) Done(picked []int, taken []bool) {
	if len(picked) == 0 {
		return
	}
	kept, next := q.entries[:picked[0]], 0
	for i := picked[0]; i < len(q.entries); i++ {
		e := q.entries[i]
		if next < len(picked) && picked[next] == i {
			next++
			if taken[next-1] {
				q.bytes -= e.Size()
				continue
			}
		}
		kept = append(kept, e)
	}
	clear(q.entries[len(kept):]) // let go of the data
	q.entries = kept
}
