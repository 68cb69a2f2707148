// Package longform separates the tests that run on every change from those that run at night.
//
// A test has one of three forms:
//
//   - The short form runs with go test -short: in CI under the race detector, and in make short.
//   - The ordinary form runs with go test: in CI and in make test. It needs only Go.
//   - The long form runs with WEIR_LONG=1 in the environment, which make nightly sets. A test
//     that takes more than a second belongs there if a shorter test also detects the same fault.
package longform

import (
	"os"
	"testing"
)

// On reports whether the long form of the tests runs.
func On() bool { return os.Getenv("WEIR_LONG") != "" }

// Only skips the test unless the long form runs.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("long form: runs with WEIR_LONG=1, as in make nightly")
	}
}
