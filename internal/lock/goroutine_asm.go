//go:build lockranks && (amd64 || arm64)

package lock

// goroutine identifies this goroutine for as long as it runs.
func goroutine() uintptr
