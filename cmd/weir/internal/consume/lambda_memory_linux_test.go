package consume

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

func TestTheStatOfAProcess(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 23456 789 18446744073709551615 1 1"
	for _, c := range []struct {
		name, stat   string
		group, pages int
		ok           bool
	}{
		{"a plain name", "7 (sh)" + rest, 42, 789, true},
		{"a name like the fields behind it", "7 (a) S 1 1 1 (b c)" + rest, 42, 789, true},
		{"nothing", "", 0, 0, false},
		{"no name", "7 sh" + rest, 0, 0, false},
		{"it is cut", "7 (sh) S 1 42 42 0", 0, 0, false},
		{"a group that is none", "7 (sh)" + strings.Replace(rest, "42", "x", 1), 0, 0, false},
		{"a process of the kernel", "7 (sh)" + strings.Replace(rest, "1 42", "1 0", 1), 0, 0, false},
		{"pages that are no number", "7 (sh)" + strings.Replace(rest, "789", "x", 1), 42, 0, false},
	} {
		if group, pages, ok := parseStat([]byte(c.stat)); ok != c.ok || ok && (group != c.group || pages != c.pages) {
			t.Errorf("%s: %d, %d, %v", c.name, group, pages, ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (sh) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 23456 789"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if group, pages, ok := parseStat(stat); ok && (group <= 0 || pages < 0) {
			t.Fatalf("%d, %d", group, pages)
		}
	})
}

// The memory of grandchild processes counts.
func TestTheMemoryOfAGroupIsThatOfAllItsProcesses(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 100 & sleep 100; :")
	shellexec.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = shellexec.EndGroup(cmd, true)
		_ = cmd.Wait()
	}()
	for end := time.Now().Add(time.Minute); ; {
		used, err := groupsMemory()
		if err != nil {
			t.Fatal(err)
		}
		own, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			t.Fatal(err)
		}
		group, _, _ := parseStat(own)
		if n := used[cmd.Process.Pid]; n > 256<<10 && used[group] > 1<<20 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v of group %d", used, cmd.Process.Pid)
		}
	}
}

func TestMemoryIsMeasuredInADirectoryOfProcesses(t *testing.T) {
	if _, err := groupsMemoryIn(t.TempDir()); err == nil {
		t.Error("a directory without processes says what is used")
	}
}

// A group is killed only if it uses too much memory, and only once. A group that has already ended
// is not killed.
func TestTheBoundOfMemoryKillsWhatUsesMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, told := map[int]int{1: 100, 2: 101, 3: 500}, 0
		var failing atomic.Bool
		failing.Store(true)
		m := boundMemory(100, func() (map[int]int, error) {
			if failing.Load() {
				return nil, errors.New("no /proc")
			}
			return used, nil
		}, func(error) { told++ })
		killed := map[int][]int{}
		for group := range 4 {
			m.watch(group, func(n int) { killed[group] = append(killed[group], n) })
		}
		m.leave(3)
		time.Sleep(3 * memoryEvery)
		if synctest.Wait(); len(killed) > 0 || told != 1 {
			t.Errorf("killed %v, told %d times", killed, told)
		}
		failing.Store(false)
		time.Sleep(3 * memoryEvery)
		if synctest.Wait(); len(killed) != 1 || len(killed[2]) != 1 || killed[2][0] != 101 {
			t.Errorf("killed %v", killed)
		}
		m.close()
	})
}

// A function that keeps allocating memory is killed and started again. Its batch is still handled.
func TestAFunctionThatLeaksIsStartedAgain(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--lambda-processes=1", "--lambda-memory=200MiB",
		"--lambda", functionCommand(t, "leaks"))
	c.Err.Await(t, "the record", func(s string) bool { return strings.Contains(s, "got x") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	for _, says := range []string{"the process of function 1 is started again", "ended in the middle of a call: it used", "--lambda-memory allows 200 MiB"} {
		if !strings.Contains(c.Err.String(), says) {
			t.Errorf("standard error lacks %q: %s", says, c.Err)
		}
	}
}

func BenchmarkGroupsMemory(b *testing.B) {
	for b.Loop() {
		if _, err := groupsMemory(); err != nil {
			b.Fatal(err)
		}
	}
}
