package codec

import "sync"

// PutResult is the result for one record in an answer to PutRecords. It contains a shard and a
// sequence number, or a code and a message.
type PutResult struct{ Shard, SequenceNumber, Code, Message string }

// MostPutAnswer returns the maximum size of an answer to PutRecords with the given number of
// records.
func MostPutAnswer(records int) int { return 64<<10 + 4<<10*records }

// ReadPut reads the body of an answer to PutRecords. most is the maximum number of results. ReadPut
// decodes in place: the results share the body's memory. The error is a [*MalformedError].
func ReadPut(f Format, body []byte, most int) ([]PutResult, error) {
	d := putReadings.Get().(*putReading)
	defer putReadings.Put(d)
	defer d.end()
	d.cbor.b, d.json.b, d.r = body, body, &d.cbor
	if f == JSON {
		d.r = &d.json
	}
	d.most, d.results = most, make([]PutResult, 0, most)
	err := d.r.object(d.member)
	if err == nil {
		err = d.r.end()
	}
	if err != nil {
		return nil, err
	}
	return d.results, nil
}

// putReading is the state for reading one answer. It is reused, so that only results are allocated.
type putReading struct {
	cbor    cborReader
	json    jsonReader
	r       reader // cbor or json
	most    int
	results []PutResult

	member, field func([]byte) error // call readMember and readField; allocated once
	element       func(bool) error   // calls readElement; allocated once
}

var putReadings = sync.Pool{New: func() any {
	d := new(putReading)
	d.member, d.field, d.element = d.readMember, d.readField, d.readElement
	return d
}}

// end resets d for another answer.
func (d *putReading) end() {
	d.cbor, d.json, d.r = cborReader{}, jsonReader{}, nil
	d.most, d.results = 0, nil
}

func (d *putReading) readMember(name []byte) error {
	if string(name) != "Records" {
		return d.r.skip()
	}
	d.results = d.results[:0]
	return d.r.array(d.element)
}

func (d *putReading) readElement(null bool) error {
	if len(d.results) == d.most {
		return d.r.malformed("more results than records")
	}
	d.results = append(d.results, PutResult{})
	if null {
		return nil
	}
	return d.r.object(d.field)
}

func (d *putReading) readField(name []byte) error {
	now := &d.results[len(d.results)-1]
	var to *string
	switch string(name) {
	case "ShardId":
		to = &now.Shard
	case "SequenceNumber":
		to = &now.SequenceNumber
	case "ErrorCode":
		to = &now.Code
	case "ErrorMessage":
		to = &now.Message
	default:
		return d.r.skip()
	}
	s, err := d.r.text()
	*to = text(s)
	return err
}
