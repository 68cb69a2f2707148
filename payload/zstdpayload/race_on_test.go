//go:build race

package zstdpayload

// raceDetector reports whether the tests run under the race detector, which makes sync.Pool drop
// objects at random.
const raceDetector = true
