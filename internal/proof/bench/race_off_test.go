//go:build !race

package bench

// raceDetector reports whether the tests run under the race detector, where sync.Pool drops some
// items at random.
const raceDetector = false
