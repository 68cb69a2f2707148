//go:build race

package sqlite

// The driver is C translated to Go, which the race detector slows down twentyfold.
const steps = 200
