//go:build lockranks && !amd64 && !arm64

package lock

import (
	"runtime"
	"strconv"
	"strings"
)

// goroutine returns a number that identifies this goroutine as long as it runs.
func goroutine() uintptr {
	var text [64]byte
	n := runtime.Stack(text[:], false)
	_, rest, _ := strings.Cut(string(text[:n]), "goroutine ")
	number, _, _ := strings.Cut(rest, " ")
	id, _ := strconv.ParseUint(number, 10, 64)
	return uintptr(id)
}
