// Package guard turns panics of user code into errors where that code runs on a goroutine that weir
// started. A panic there would end the process.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Panic is a recovered panic, as an error.
type Panic struct {
	Value any    // the argument of panic
	Stack string // of the goroutine, as [debug.Stack] returns it
}

// Error returns the value without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("a call panicked: %v", p.Value) }

// Unwrap returns the value if that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call calls f and returns its error, or a [*Panic].
func Call(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{p, string(debug.Stack())}
		}
	}()
	return f()
}
