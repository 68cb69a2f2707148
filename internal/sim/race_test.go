//go:build race

package sim

// raced is whether the race detector makes everything ten times slower.
const raced = true
