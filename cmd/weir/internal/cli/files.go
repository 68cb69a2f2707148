package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ExistsError reports that a file already exists at the path.
type ExistsError struct{ path string }

func (e ExistsError) Error() string {
	return fmt.Sprintf("the file %s exists already: name another one", e.path)
}

// WriteNew creates a file, writes it and syncs it to disk. If the file already exists, it returns
// an ExistsError.
func WriteNew(path string, write func(*os.File) error) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return ExistsError{path}
	}
	if err != nil {
		return fmt.Errorf("the file %s cannot be made: %w", path, RootError(err))
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("the file %s cannot be written: %w", path, RootError(err)), os.Remove(path))
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	return file.Sync()
}

// RootError returns the system's error without the path. weir's own message contains the path.
func RootError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
