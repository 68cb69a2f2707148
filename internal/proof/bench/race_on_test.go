//go:build race

package bench

// raceDetector says that the tests run under the race detector, where sync.Pool drops a part of
// what it is given at random.
const raceDetector = true
