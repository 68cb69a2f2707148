//go:build race

package sim

// raced reports whether the race detector is on. It makes everything ten times slower, and makes
// the order of goroutines random.
const raced = true
