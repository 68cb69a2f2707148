package consume

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// measuresMemory says that what a process group uses can be found out.
const measuresMemory = true

// groupsMemory returns the memory of each process group: the sum of its processes' resident memory.
// Shared pages count for each process.
func groupsMemory() (map[int]int, error) { return groupsMemoryIn("/proc") }

func groupsMemoryIn(proc string) (map[int]int, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // only read from
	if err != nil {
		return nil, err
	}
	used, page, some := map[int]int{}, os.Getpagesize(), false
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(proc, name, "stat"))
		if err != nil { // it has ended or belongs to another user
			continue
		}
		if group, pages, ok := parseStat(stat); ok {
			used[group] += pages * page
			some = true
		}
	}
	if !some {
		return nil, fmt.Errorf("%s: %w", proc, errors.New("it names no process that can be read"))
	}
	return used, nil
}

// parseStat reads the process group and the pages in RAM of a line of /proc/PID/stat. The second
// field is a name in parentheses, which may have any characters.
func parseStat(stat []byte) (group, pages int, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	const groupAt, pagesAt = 2, 21 // of the fields behind the name
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= pagesAt {
		return 0, 0, false
	}
	group, err := strconv.Atoi(string(fields[groupAt]))
	if err != nil || group <= 0 {
		return 0, 0, false
	}
	pages, err = strconv.Atoi(string(fields[pagesAt]))
	return group, pages, err == nil && pages >= 0
}
