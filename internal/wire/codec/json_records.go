package codec

import (
	"unicode/utf8"

	"github.com/weir-go/weir/shard"
)

// records appends the records of the next list to the page.
func (d *jsonReader) records(p *Page) error {
	if err := d.want('[', "a list"); err != nil {
		return err
	}
	first := true
	for {
		more, err := d.more(&first, ']')
		if err != nil || !more {
			return err
		}
		if len(p.Records) == maxRecords {
			return d.malformed("too many records")
		}
		r := p.slot(len(d.b) - d.i)
		if err := d.record(r); err != nil {
			return err
		}
		p.added(r)
	}
}

func (d *jsonReader) record(r *Record) error {
	*r = Record{Done: shard.Whole}
	if null, err := d.null(); err != nil || null {
		return err
	}
	if err := d.want('{', "an object"); err != nil {
		return err
	}
	first := true
	for {
		more, err := d.more(&first, '}')
		if err != nil || !more {
			return err
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		f := fieldOf(name)
		if null, err := d.null(); err != nil {
			return err
		} else if null {
			continue
		}
		if err := d.member(f, r); err != nil {
			return err
		}
	}
}

// member reads the value of a record's member.
func (d *jsonReader) member(f field, r *Record) error {
	var s []byte
	var err error
	switch f {
	case fieldData:
		r.Data, err = d.data()
	case fieldKey:
		s, err = d.text()
		r.Key = text(s)
	case fieldSequence:
		s, err = d.text()
		r.SequenceNumber = text(s)
	case fieldEncryption:
		s, err = d.text()
		r.Encrypted = string(s) == kms
	case fieldArrival:
		r.Arrival, err = d.arrival()
	default:
		err = d.skip()
	}
	return err
}

// data reads a base64 string and decodes it in place. base64Groups decodes most of it. It stops at
// the closing quote, at padding, and at escaped slashes, which some servers write.
func (d *jsonReader) data() ([]byte, error) {
	if err := d.want('"', "a string"); err != nil {
		return nil, err
	}
	b, from := d.b, d.i
	dst := from
	for {
		dst, d.i = base64Groups(b, dst, d.i)
		var tail base64Tail
		out := b[from:dst]
		// Decode one group byte by byte, and continue at the next group.
		for taken := 0; ; taken++ {
			if d.i >= len(b) {
				return nil, d.short()
			}
			c := b[d.i]
			switch {
			case c == '"' && tail.done():
				d.i++
				return out[:len(out):len(out)], nil
			case c == '"':
				return nil, d.malformed("data that is not base64")
			case c == '\\':
				r, err := d.escape()
				if err != nil {
					return nil, err
				}
				if r >= utf8.RuneSelf {
					return nil, d.malformed("data that is not base64")
				}
				c = byte(r)
			case c < ' ':
				return nil, d.malformed("a control character in a string")
			default:
				d.i++
			}
			var ok bool
			if out, ok = tail.add(c, out); !ok {
				return nil, d.malformed("data that is not base64")
			}
			if taken >= 4 && tail.chars == 0 {
				break
			}
		}
		dst = from + len(out)
	}
}
