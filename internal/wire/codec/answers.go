package codec

import "strings"

// ReadError reads the code and the message of an answer that is an error. The service writes
// "__type" and "message", but a serialization error has "Message", and other servers use "code".
// The error is a [*MalformedError], with what was read before it.
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

// ReadIterator reads the answer to GetShardIterator: the iterator, empty when the answer has none,
// or a [*MalformedError].
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
