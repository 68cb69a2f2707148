// Package guarded calls what users pass to weir: a store, a credentials provider, an HTTP client.
// It returns their panics as errors, because weir calls them from its own goroutines, where a panic
// would end the process. It also decides which features a store is not able to serve.
package guarded

import "github.com/weir-go/weir/internal/lock"

// Panicked returns the error for a panic with a value. It is called where the panic was recovered.
// who names the code that panicked, such as "the store".
type Panicked func(who string, value any) error

// call calls f and returns its error, or that of its panic.
func (p Panicked) call(who string, f func() error) (err error) {
	lock.Free(who)
	defer func() {
		if v := recover(); v != nil {
			err = p(who, v)
		}
	}()
	return f()
}
