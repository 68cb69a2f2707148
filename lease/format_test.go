package lease

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckFormat(t *testing.T) {
	for format, newer := range map[uint64]bool{0: false, 1: false, Format + 1: true, 1 << 63: true} {
		err := CheckFormat(format)
		if newer != (err != nil) || newer != errors.Is(err, ErrFormat) || newer != errors.Is(err, ErrSetup) {
			t.Errorf("format %d: %v", format, err)
		}
		if newer && !strings.Contains(err.Error(), "replace this program") {
			t.Errorf("format %d: %v does not say what to do", format, err)
		}
	}
}
