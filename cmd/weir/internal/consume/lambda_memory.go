package consume

import (
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

// memoryEvery is the interval between measurements of the processes' memory.
const memoryEvery = time.Second

// memoryBound kills process groups that use too much memory. One goroutine measures all groups;
// close ends it.
type memoryBound struct {
	most    int // limit in bytes
	measure func() (map[int]int, error)
	tell    func(err error) // reports, once, that memory cannot be measured

	mu      sync.Mutex
	watched map[int]func(used int) // called for a group that uses too much memory

	ended chan struct{}
	done  chan struct{}
}

// boundMemory returns a memoryBound and starts to measure.
func boundMemory(most int, measure func() (map[int]int, error), tell func(error)) *memoryBound {
	m := &memoryBound{most: most, measure: measure, tell: tell, watched: map[int]func(int){}, ended: make(chan struct{}), done: make(chan struct{})}
	go m.run()
	return m
}

func (m *memoryBound) run() {
	defer close(m.done)
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-tick.C:
		case <-m.ended:
			return
		}
		if !m.watches() {
			continue
		}
		used, err := m.measure()
		if err != nil && !told {
			told = true
			m.tell(err)
		}
		m.judge(used)
	}
}

func (m *memoryBound) watches() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.watched) > 0
}

// judge kills the groups that use too much memory and reports each once.
func (m *memoryBound) judge(used map[int]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for group, kill := range m.watched {
		if used[group] > m.most {
			delete(m.watched, group)
			kill(used[group])
		}
	}
}

// watch adds a process group. kill is called if the group uses too much memory, and must not block.
// On a nil memoryBound, watch does nothing.
func (m *memoryBound) watch(group int, kill func(used int)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[group] = kill
}

// leave removes a process group.
func (m *memoryBound) leave(group int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, group)
}

// memoryError reports that a process was killed because of its memory.
type memoryError struct{ used, most int }

func (e *memoryError) Error() string {
	return fmt.Sprintf("it used %s of memory, but --lambda-memory allows %s, and was killed", sizeText(e.used), sizeText(e.most))
}

// sizeText formats a number of bytes in MiB, rounded up.
func sizeText(n int) string { return strconv.Itoa((n+1<<20-1)>>20) + " MiB" }

// bounded runs a process until it ends, and returns the reason for its end. Messages identify the
// process by number.
func (fs *functions) bounded(cmd *exec.Cmd, number int) error {
	var used atomic.Int64
	err := shellexec.Run(cmd, func() {
		fs.memory.watch(cmd.Process.Pid, func(n int) {
			used.Store(int64(n))
			_ = shellexec.EndGroup(cmd, true)
		})
	})
	if cmd.Process != nil {
		fs.memory.leave(cmd.Process.Pid)
	}
	if n := int(used.Load()); n > 0 {
		err = &memoryError{n, fs.memory.most}
		fs.t.Say(slog.LevelWarn, "the process of function %d is started again: %v", number, err)
	}
	return err
}

func (m *memoryBound) close() {
	if m == nil {
		return
	}
	close(m.ended)
	<-m.done
}
