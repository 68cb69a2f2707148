//go:build race

package sim

// raced is whether the race detector looks on: it makes everything ten times slower, and the order
// of goroutines random.
const raced = true
