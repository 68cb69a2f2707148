//go:build !unix

package http1

// readNow is not supported on this system.
func readNow(uintptr, []byte) (int, error) { return 0, errNothing }
