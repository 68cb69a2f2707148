//go:build race

package sqlite

// The driver is C translated to Go. The race detector makes it twenty times slower.
const steps = 200
