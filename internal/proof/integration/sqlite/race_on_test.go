//go:build race

package sqlite

// The driver is C translated to Go, which the race detector makes twenty times slower.
const steps = 200
