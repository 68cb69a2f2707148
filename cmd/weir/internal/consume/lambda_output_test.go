package consume

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

func TestHowMuchAProcessMayWrite(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	const rate = 1000
	type line struct {
		after time.Duration // time since the previous line
		bytes int
		want  bool
	}
	for _, c := range []struct {
		name  string
		lines []line
	}{
		{"a burst at the beginning, and no more", []line{{0, 9_000, true}, {0, 1_000, true}, {0, 1, false}}},
		{"a line that does not fit leaves room for one that does", []line{{0, 9_999, true}, {0, 2, false}, {0, 1, true}}},
		{"then its rate", []line{{0, 10_000, true}, {time.Second, 1_000, true}, {0, 1, false}, {100 * time.Millisecond, 100, true}, {0, 1, false}}},
		{"after a silence a burst, and no more", []line{{0, 10_000, true}, {time.Hour, 10_000, true}, {0, 1, false}}},
		{"a clock that goes back gives nothing", []line{{0, 10_000, true}, {-time.Hour, 1, false}, {time.Second, 1_000, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r outputRoom
			now := began
			for i, l := range c.lines {
				now = now.Add(l.after)
				if got := r.take(l.bytes, rate, now); got != l.want {
					t.Errorf("line %d: %v", i, got)
				}
			}
		})
	}
}

// Output above a process's rate is dropped, and reported once a minute for each process. Other
// processes lose no output.
func TestAProcessThatFloodsIsCutAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, told := clitest.NewOutput(), clitest.NewOutput()
		o := passOutput(out, 2, 1000, func(format string, args ...any) { fmt.Fprintf(told, format+"\n", args...) })
		floods, quiet := &processOutput{of: o, number: 1}, &processOutput{of: o, number: 2}
		line := []byte(strings.Repeat("x", 99) + "\n")
		for range 150 { // 150 seconds
			for range 50 {
				if n, err := floods.Write(line); n != len(line) || err != nil {
					t.Fatal(n, err)
				}
			}
			_, _ = quiet.Write([]byte("quiet\n"))
			time.Sleep(time.Second)
		}
		if got := len(told.Lines()); got != 2 {
			t.Errorf("told %d times in two minutes and a half: %s", got, told)
		}
		o.close()
		passed, other := strings.Count(out.String(), string(line)), strings.Count(out.String(), "quiet")
		if passed < 1500 || passed > 1600 || other != 150 {
			t.Errorf("%d lines passed, and %d of the other", passed, other)
		}
		dropped := 0
		for _, l := range told.Lines() {
			n, number := 0, 0
			if _, err := fmt.Sscanf(l, "%d bytes that function %d wrote were dropped", &n, &number); err != nil || number != 1 {
				t.Error(l, err)
			}
			dropped += n
		}
		if dropped != (150*50-passed)*len(line) {
			t.Errorf("%d bytes are said to be dropped of %d lines that passed", dropped, passed)
		}
	})
}

// If a reader is stuck, writes do not wait for it, and close waits only for the grace period.
func TestOutputThatNobodyReadsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		told := 0
		o := passOutput(w, 1, 0, func(string, ...any) { told++ })
		p := &processOutput{of: o, number: 1}
		line := []byte(strings.Repeat("x", 8<<10) + "\n")
		for range 2000 { // 16 MiB
			_, _ = p.Write(line)
		}
		began := time.Now()
		if o.close(); time.Since(began) != shellexec.Grace {
			t.Errorf("it ended after %v", time.Since(began))
		}
		_ = r.Close() // as at the end of the program
		if <-o.done; told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}
