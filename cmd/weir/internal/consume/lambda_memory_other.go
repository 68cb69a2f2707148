//go:build !linux

package consume

import "errors"

// measuresMemory reports whether the memory of a process group can be measured.
const measuresMemory = false

func groupsMemory() (map[int]int, error) { return nil, errors.ErrUnsupported }
