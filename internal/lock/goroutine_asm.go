//go:build lockranks && (amd64 || arm64)

package lock

// goroutine returns a number that identifies this goroutine as long as it runs.
func goroutine() uintptr
