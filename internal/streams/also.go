package streams

// Also returns err with a prefix before its text. The result wraps err, and also wraps sentinel,
// whose text it does not repeat.
func Also(prefix string, err, sentinel error) error { return &alsoError{prefix, err, sentinel} }

type alsoError struct {
	prefix   string
	err      error
	sentinel error
}

func (e *alsoError) Error() string   { return e.prefix + e.err.Error() }
func (e *alsoError) Unwrap() []error { return []error{e.err, e.sentinel} }
