package codec

import "github.com/weir-go/weir/shard"

// records appends the records of the next list to the page.
func (d *cborReader) records(p *Page) error {
	n, err := d.begin(cborArray, 1, "an array")
	if err != nil {
		return err
	}
	if n > maxRecords {
		return d.malformed("too many records")
	}
	p.reserve(min(n, usualRecords))
	for {
		more, err := d.more(&n)
		if err != nil || !more {
			return err
		}
		if len(p.Records) == maxRecords {
			return d.malformed("too many records")
		}
		r := p.slot(len(d.b) - d.i)
		if next := d.layout.read(d.b, d.i, r); next > 0 {
			d.i = next
		} else if err := d.record(r, p); err != nil {
			return err
		}
		p.added(r)
	}
}

// record reads one record in any form and stores its layout for the next record.
func (d *cborReader) record(r *Record, p *Page) error {
	*r = Record{Done: shard.Whole}
	null, err := d.null()
	if err != nil || null {
		return err
	}
	learned := cborLayout{head: d.b[d.i]}
	n, err := d.begin(cborMap, 2, "a map")
	if err != nil {
		return err
	}
	for {
		more, err := d.more(&n)
		if err != nil {
			return err
		}
		if !more {
			d.layout = learned.usable()
			return nil
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		f := fieldOf(name)
		learned.add(f)
		if null, err := d.null(); err != nil {
			return err
		} else if null {
			learned.add(fieldUnknown)
			continue
		}
		if err := d.member(f, r, p); err != nil {
			return err
		}
	}
}

// member reads the value of a record's member.
func (d *cborReader) member(f field, r *Record, p *Page) error {
	var s []byte
	var err error
	switch f {
	case fieldData:
		return d.data(r, p)
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

// data reads a byte string. Some servers send a base64 text instead, which data decodes.
func (d *cborReader) data(r *Record, p *Page) error {
	c, err := d.peek()
	if err != nil {
		return err
	}
	if c&0xe0 != cborText {
		r.Data, err = d.str(cborBytes, "bytes")
		return err
	}
	s, err := d.text()
	if err != nil {
		return err
	}
	n, ok := decodeBase64(s)
	if !ok {
		return d.malformed("data is a text that is not base64")
	}
	r.Data, p.Text = s[:n:n], true
	return nil
}
