package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// diskBytes is the size of the small disk. It is several times the largest write-ahead log.
const diskBytes = 24 << 20

// mountSmall mounts a small disk in memory that can be filled. It requires root.
func mountSmall(dir string) (unmount func() error, err error) {
	if err := syscall.Mount("chaos", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, fmt.Sprintf("size=%d,mode=700", diskBytes)); err != nil {
		return nil, fmt.Errorf("no disk that could be filled can be mounted: %w", err)
	}
	return func() error { return syscall.Unmount(dir, syscall.MNT_DETACH) }, nil
}

func appendUntilFull(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		n, err := f.Write(make([]byte, size))
		switch {
		case err == nil:
		case !errors.Is(err, syscall.ENOSPC):
			return err
		case n == 0:
			size /= 2
		}
	}
	return nil
}
