package java_test

import (
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(weirReader); told != "" {
		os.Exit(readWithWeir(told))
	}
	os.Exit(leaktest.Run(m))
}
