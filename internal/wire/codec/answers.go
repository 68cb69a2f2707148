package codec

import "strings"

// ReadError reads the code and the message from the body of an error. Kinesis writes "__type" and
// "message", but a serialization error has "Message". Other servers use "code". If the body is
// malformed, ReadError returns the members that it read before, and a [*MalformedError].
func ReadError(f Format, body []byte) (code, message string, err error) {
	r := newReader(f, body)
	err = r.object(func(name []byte) error {
		var to *string
		switch key := string(name); {
		case key == "__type":
			to = &code
		case strings.EqualFold(key, "code") && code == "":
			to = &code
		case strings.EqualFold(key, "message"):
			to = &message
		default:
			return r.skip()
		}
		s, err := r.text()
		*to = string(s)
		return err
	})
	return code, message, err
}

// ReadIterator reads the iterator from an answer to GetShardIterator. It returns "" if the answer
// has none. The error is a [*MalformedError].
func ReadIterator(f Format, body []byte) (it string, err error) {
	r := newReader(f, body)
	err = r.object(func(name []byte) error {
		if string(name) != "ShardIterator" {
			return r.skip()
		}
		s, err := r.text()
		if err == nil && len(s) > MaxIterator {
			err = r.malformed("ShardIterator is longer than 64 KiB")
		}
		it = string(s)
		return err
	})
	if err == nil {
		err = r.end()
	}
	return it, err
}
