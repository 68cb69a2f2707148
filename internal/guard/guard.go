// Package guard converts panics of user code to errors, if that code runs in a goroutine of weir.
// Such a panic would otherwise end the process.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Panic is a recovered panic, as an error.
type Panic struct {
	Value any    // the argument of panic
	Stack string // stack of the goroutine, as returned by [debug.Stack]
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
