package lease

import (
	"errors"
	"fmt"
)

// Format is the number of the format in which this version of weir stores state. Rows without a
// number have format 1, because the first versions wrote no number. A version gets a higher number
// if earlier versions cannot use the state that it stores. Such a version writes its number before
// anything else.
const Format = 1

// ErrFormat is wrapped by errors about stored state of a newer [Format]. Such errors also wrap
// [ErrSetup]. A worker that gets one stops.
var ErrFormat = errors.New("lease: the stored state has a newer format")

// CheckFormat returns an error that wraps [ErrFormat] and [ErrSetup] if stored state has a newer
// format than this program supports. A format of 0 counts as 1.
func CheckFormat(format uint64) error {
	if format <= Format {
		return nil
	}
	return NewerFormat(fmt.Sprintf("it has format %d, and this program knows formats up to %d", format, Format))
}

// NewerFormat returns the same error as [CheckFormat], for a store with its own format numbers.
// text contains these numbers.
func NewerFormat(text string) error {
	return fmt.Errorf("%w: %w: %s. A newer version of weir has changed it: replace this program with that version", ErrSetup, ErrFormat, text)
}
