package codec

// PutResult is the result for one record in an answer to PutRecords. It contains a shard and a
// sequence number, or a code and a message.
type PutResult struct{ Shard, SequenceNumber, Code, Message string }

// MostPutAnswer returns the maximum size of an answer to PutRecords with the given number of
// records.
func MostPutAnswer(records int) int { return 64<<10 + 4<<10*records }

// ReadPut reads the body of an answer to PutRecords. most is the maximum number of results. ReadPut
// decodes in place: the results share the body's memory. The error is a [*MalformedError].
func ReadPut(f Format, body []byte, most int) ([]PutResult, error) {
	r := newReader(f, body)
	results := make([]PutResult, 0, most)
	var now *PutResult
	member := func(name []byte) error {
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
			return r.skip()
		}
		s, err := r.text()
		*to = text(s)
		return err
	}
	element := func(null bool) error {
		if len(results) == most {
			return r.malformed("more results than records")
		}
		results = append(results, PutResult{})
		if null {
			return nil
		}
		now = &results[len(results)-1]
		return r.object(member)
	}
	err := r.object(func(name []byte) error {
		if string(name) != "Records" {
			return r.skip()
		}
		results = results[:0]
		return r.array(element)
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}
