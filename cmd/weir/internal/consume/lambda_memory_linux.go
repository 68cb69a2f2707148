package consume

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// measuresMemory reports whether the memory of a process group can be measured.
const measuresMemory = true

// groupsMemory returns the memory of each process group. It is the sum of the resident memory of
// the group's processes. Memory that processes share counts once for each process.
func groupsMemory() (map[int]int, error) { return groupsMemoryIn("/proc") }

func groupsMemoryIn(proc string) (map[int]int, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // the directory was only read
	if err != nil {
		return nil, err
	}
	used, page, some := map[int]int{}, os.Getpagesize(), false
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(proc, name, "stat"))
		if err != nil { // the process has ended, or belongs to another user
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

// parseStat returns the process group and the number of resident pages in a line of /proc/PID/stat.
// The second field is a name in parentheses, which may contain any characters.
func parseStat(stat []byte) (group, pages int, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	const groupAt, pagesAt = 2, 21 // indexes of the fields that follow the name
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
