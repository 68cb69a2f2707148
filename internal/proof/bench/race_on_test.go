//go:build race

package bench

// raceDetector reports whether the race detector is on. sync.Pool then drops some items at random.
const raceDetector = true
