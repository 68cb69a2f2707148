// Package guarded calls objects that users pass to weir: a store, and a client of Kinesis with its
// credentials provider and its HTTP client. It returns their panics as errors, because weir calls
// them in its own goroutines, where a panic would end the process. It also determines which
// features a store does not support.
package guarded

import "github.com/weir-go/weir/internal/lock"

// Panicked returns the error for a panic. It is called where the panic was recovered. who names the
// code that panicked, such as "the store".
type Panicked func(who string, value any) error

// call calls f and returns its error, or the error for its panic.
func (p Panicked) call(who string, f func() error) (err error) {
	lock.Free(who)
	defer func() {
		if v := recover(); v != nil {
			err = p(who, v)
		}
	}()
	return f()
}
