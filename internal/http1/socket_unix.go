//go:build unix

package http1

import (
	"errors"
	"io"
	"syscall"
)

// readNow reads the available data.
func readNow(fd uintptr, p []byte) (int, error) {
	n, err := syscall.Read(int(fd), p)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, errNothing
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
