// Package situations_test creates situations of applications with real processes, and compares what
// the tools say about each situation with a table.
package situations_test

import (
	"flag"
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

// full runs the test, which takes some minutes.
var full = flag.Bool("full", false, "create the situations and compare what the tools say")

// update makes the test write the page about situations and its pictures.
var update = flag.Bool("update", false, "write docs/guide/situations.md and its pictures")

func TestMain(m *testing.M) {
	flag.Parse()
	// The situations mostly wait, so all of them run at the same time.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(leaktest.Run(m))
}
