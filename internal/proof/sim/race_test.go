//go:build race

package sim

// raced reports whether the race detector is on: it makes everything ten times slower, and the
// order of goroutines random.
const raced = true
