package lease

import (
	"errors"
	"fmt"
)

// Format is the number of the form in which this version of weir keeps state. Rows without a number
// have format 1, and versions that do not know the number write such rows. A version that keeps
// state in a form that others cannot work with has a higher number, and writes the number first.
const Format = 1

// ErrFormat is wrapped by errors about stored state of a newer [Format]. They also wrap [ErrSetup].
// A worker that receives one stops.
var ErrFormat = errors.New("lease: the stored state has a newer format")

// CheckFormat returns an error that wraps [ErrFormat] and [ErrSetup] if stored state of a format is
// newer than what this program can work with. A format of 0 counts as 1.
func CheckFormat(format uint64) error {
	if format <= Format {
		return nil
	}
	return NewerFormat(fmt.Sprintf("it has format %d, and this program knows formats up to %d", format, Format))
}

// NewerFormat returns the error of [CheckFormat] for a store with another numbering. text states
// the numbers.
func NewerFormat(text string) error {
	return fmt.Errorf("%w: %w: %s. A newer version of weir has changed it: replace this program with that version", ErrSetup, ErrFormat, text)
}
