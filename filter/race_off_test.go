//go:build !race

package filter_test

// raceDetector says that the tests run under the race detector, where sync.Pool drops objects at
// random.
const raceDetector = false
