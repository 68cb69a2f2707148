package codec

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Parts reads a CBOR answer in parts. Each part contains the whole records in one window of the
// answer. The beginning of a record at the end of a window is carried over to the next window. Each
// window is filled in pieces, and each piece is decoded while it is in the processor's cache. Parts
// is not safe for concurrent use.
type Parts struct {
	Body   io.Reader
	Left   int64 // unread bytes of the answer; -1 if its length is unknown
	Window int   // size of a window in bytes
	Piece  int   // bytes to read before decoding; 64 KiB if 0
	Bodies *Bodies

	read   int    // bytes of the answer that were read
	carry  []byte // bytes that were read and not decoded yet
	memory Memory // provided the bytes of carry
	held   int
	failed error      // the error for the next part
	cbor   cborReader // reads the current window
	ahead  int        // bytes of the window that are still to be read; 0 if unknown
	at     partsPlace
	open   int // remaining members of the answer; -1 if a break ends them
	list   int // remaining records; -1 if a break ends them
	count  int // number of records that were read
	had    bool
	rest   Page // contains Next, Behind and Children
}

// usualPiece is the size of a few TLS records.
const usualPiece = 64 << 10

// partsPlace is the place in an answer where a part ends.
type partsPlace uint8

const (
	beforeAnswer partsPlace = iota
	inMembers
	inRecords
	afterAnswer
)

// Next reads the next part into p. It sets p.Last for the last part.
func (pr *Parts) Next(p *Page) error {
	stale := p.begin()
	err := pr.part(p)
	p.finish(stale)
	return err
}

func (pr *Parts) part(p *Page) error {
	if pr.failed != nil {
		return pr.failed
	}
	size := max(pr.Window, 2*len(pr.carry))
	if pr.Left >= 0 {
		size = min(size, len(pr.carry)+int(pr.Left))
	}
	b, err := pr.Bodies.Room(min(size, max(LeastBody, 2*len(pr.carry))), size, p)
	if err != nil {
		return err
	}
	n := copy(b, pr.carry)
	pr.carry = pr.carry[:0]
	d := &pr.cbor
	d.i = 0
	for {
		var err error
		if n, err = pr.fill(b[:min(len(b), n+cmp.Or(pr.Piece, usualPiece))], n); err != nil {
			return err
		}
		d.b, pr.ahead = b[:n], 0
		if pr.Left > 0 {
			pr.ahead = len(b) - n
		}
		err = pr.parse(d, p)
		switch {
		case err != nil:
			return err
		case pr.at == afterAnswer:
			if d.i < n {
				return d.malformed("more after the end of the answer")
			}
			if err := pr.wantEnd(d); err != nil {
				return err
			}
			p.Next, p.Behind, p.Children, p.Last = pr.rest.Next, pr.rest.Behind, pr.rest.Children, true
			return nil
		case pr.Left == 0:
			return d.short()
		case n < len(b):
			continue
		case len(p.Records) > 0:
			pr.keep(b[d.i:n], p)
			return nil
		}
		// The window does not contain a whole record. The bytes before the record are no longer
		// needed.
		rest := b[d.i:n]
		d.i = 0
		if len(rest) == len(b) {
			if len(b) == pr.Bodies.Most {
				return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, pr.Bodies.Most)
			}
			n = len(rest)
			if b, err = pr.Bodies.larger(pr.larger(d, n), rest, p); err != nil {
				if short := (*NoMemoryError)(nil); errors.As(err, &short) {
					short.One = true
				}
				return err
			}
		} else {
			n = copy(b, rest)
		}
	}
}

// larger returns the size of the next window, for a record that did not fit into this window of n
// bytes. It uses the size that the record states, or else twice n.
func (pr *Parts) larger(d *cborReader, n int) int {
	size := 2 * n
	if end := d.reach(); end > 0 {
		size = end + recordRest
	}
	if pr.Left >= 0 {
		size = min(size, n+int(pr.Left))
	}
	return max(size, n+1)
}

// recordRest is room for the members of a record that may follow its data.
const recordRest = 2 << 10

// keep carries b over to the next part. If there is no memory for b, this part succeeds and the
// next one fails.
func (pr *Parts) keep(b []byte, p *Page) {
	if more := len(b) - cap(pr.carry); more > 0 && p.Memory != nil {
		if p.Memory.TryTake(more, more) == 0 {
			pr.failed = &NoMemoryError{Bytes: more}
			return
		}
		pr.memory, pr.held = p.Memory, pr.held+more
	}
	pr.carry = append(slices.Grow(pr.carry, len(b)), b...)
}

// Close returns the memory for carried-over bytes.
func (pr *Parts) Close() {
	if pr.held > 0 {
		pr.memory.Give(pr.held)
		pr.held = 0
	}
}

// fill reads until b is full or the answer ends. At the end of the answer it sets Left to 0.
func (pr *Parts) fill(b []byte, n int) (int, error) {
	for n < len(b) && pr.Left != 0 {
		more, err := pr.Body.Read(b[n:])
		n += more
		pr.read += more
		if pr.Left > 0 {
			pr.Left -= int64(more)
		}
		switch {
		case pr.read > pr.Bodies.Most:
			return n, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, pr.Bodies.Most)
		case errors.Is(err, io.EOF) && pr.Left <= 0:
			pr.Left = 0
		case err != nil:
			return n, Incomplete(pr.read, err)
		}
	}
	return n, nil
}

// wantEnd checks that no byte follows the answer.
func (pr *Parts) wantEnd(d *cborReader) error {
	if pr.Left == 0 {
		return nil
	}
	n, err := io.ReadFull(pr.Body, make([]byte, 1))
	if n > 0 {
		return d.malformed("more after the end of the answer")
	}
	if !errors.Is(err, io.EOF) {
		return Incomplete(pr.read, err)
	}
	pr.Left = 0
	return nil
}

// errMore is the error for a record that continues after the bytes read. It is allocated once
// because it occurs for each piece.
var errMore error = &MalformedError{Format: CBOR, What: shortAnswer, short: true}

// parse reads the members and the whole records in the window. It leaves d.i at the first byte that
// it could not use yet.
func (pr *Parts) parse(d *cborReader, p *Page) error {
	for pr.at != afterAnswer {
		from, open, list := d.i, pr.open, pr.list
		var err error
		switch pr.at {
		case beforeAnswer:
			pr.rest.Behind = -1
			if pr.open, err = pr.begin(d, cborMap, 2, "a map"); err == nil {
				pr.at = inMembers
			}
		case inMembers:
			err = pr.member(d)
		case inRecords:
			err = pr.record(d, p)
		}
		if err == nil {
			continue
		}
		if pr.Left == 0 || !isShort(err) {
			return err
		}
		d.i, pr.open, pr.list = from, open, list
		return nil
	}
	return nil
}

// isShort reports whether err may only mean that more bytes are needed.
func isShort(err error) bool {
	if err == errMore { //nolint:errorlint // the usual case, without an allocation
		return true
	}
	malformed := (*MalformedError)(nil)
	return errors.As(err, &malformed) && malformed.short
}

// begin is like cborReader.begin, but accepts an array or a map that continues after the window.
func (pr *Parts) begin(d *cborReader, major byte, items int, what string) (int, error) {
	c, err := d.peek()
	if err != nil {
		return 0, err
	}
	if c&0xe0 != major {
		return 0, d.malformed("expected " + what)
	}
	first, n, err := d.head()
	if err != nil {
		return 0, err
	}
	if first&31 == cborOpen {
		return -1, nil
	}
	if n > uint64((pr.Bodies.Most-pr.read+len(d.b)-d.i)/items) {
		return 0, d.malformed("longer than any answer")
	}
	return int(n), nil
}

// whole checks that the window contains the whole next item. It does not change the window.
func (d *cborReader) whole() error {
	probe := cborReader{b: d.b, i: d.i}
	return probe.skip()
}

// member reads the next member of the answer. Of the records it reads only the beginning of the
// list.
func (pr *Parts) member(d *cborReader) error {
	more, err := d.more(&pr.open)
	if err != nil {
		return err
	}
	if !more {
		pr.at = afterAnswer
		return nil
	}
	probe := cborReader{b: d.b, i: d.i}
	if err := probe.skip(); err != nil {
		return err
	}
	if string(d.b[d.i:probe.i]) != "\x67Records" {
		// Strings must only be joined in place if the value is complete.
		if err := probe.skip(); err != nil {
			return err
		}
	}
	name, err := d.name()
	if err != nil {
		return err
	}
	if null, err := d.null(); err != nil || null {
		return err
	}
	if string(name) != "Records" {
		return readMember(d, &pr.rest, name, "NextShardIterator")
	}
	if pr.had {
		return d.malformed("records twice")
	}
	if pr.list, err = pr.begin(d, cborArray, 1, "an array"); err != nil {
		return err
	}
	if pr.list > maxRecords {
		return d.malformed("too many records")
	}
	pr.had, pr.at = true, inRecords
	return nil
}

// record reads the next record, or the end of the list.
func (pr *Parts) record(d *cborReader, p *Page) error {
	more, err := d.more(&pr.list)
	if err != nil {
		return err
	}
	if !more {
		pr.at = inMembers
		return nil
	}
	if pr.count == maxRecords {
		return d.malformed("too many records")
	}
	n := len(p.Records)
	r := p.slot(len(d.b) + pr.ahead - d.i)
	if next := d.layout.read(d.b, d.i, r); next > 0 {
		d.i = next
	} else {
		err = errMore
		if next == 0 || pr.Left == 0 {
			if err = d.whole(); err == nil {
				err = d.record(r, p)
			}
		}
		if err != nil {
			*r = Record{}
			p.Records = p.Records[:n]
			return err
		}
	}
	pr.count++
	p.added(r)
	return nil
}
