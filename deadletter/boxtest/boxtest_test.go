package boxtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

func TestAFileKeepsTheContract(t *testing.T) {
	dir := t.TempDir()
	boxtest.Run(t, func(t *testing.T, name string) deadletter.Box {
		t.Helper()
		return deadletter.File(filepath.Join(dir, name))
	})
}
