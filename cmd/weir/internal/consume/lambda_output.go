package consume

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

const (
	// outputRate is how many bytes a second a function's process may write, if no flag says it.
	outputRate = 256 << 10
	// outputBurst is the burst of a process that was silent, in seconds of its rate.
	outputBurst = 10
	// outputWaiting is how many bytes of all processes may wait to be written.
	outputWaiting = 8 << 20
	// outputTold is the interval of reports on dropped output.
	outputTold = time.Minute
)

// outputs passes on the output of a function's processes, line by line. It drops output beyond a
// process's rate, or that is not read in time, and reports how much. So a flood cannot fill a disk,
// and no process waits for its output. One goroutine writes; it ends with close.
type outputs struct {
	to   io.Writer
	rate int // bytes a second for each process; 0 is no bound
	tell func(format string, args ...any)

	some  chan struct{} // there are lines; of one
	ended chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	lines   []byte
	dropped []int // bytes since the last report, by process
}

// passOutput begins to pass on the output of n processes.
func passOutput(to io.Writer, processes, rate int, tell func(format string, args ...any)) *outputs {
	o := &outputs{
		to: to, rate: rate, tell: tell, dropped: make([]int, processes),
		some: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{}),
	}
	go o.run()
	return o
}

func (o *outputs) run() {
	defer close(o.done)
	tick := time.NewTicker(outputTold)
	defer tick.Stop()
	for {
		select {
		case <-o.some:
			o.write()
		case <-tick.C:
			o.tellDropped()
		case <-o.ended:
			o.write()
			o.tellDropped()
			return
		}
	}
}

// write writes the lines that wait.
func (o *outputs) write() {
	o.mu.Lock()
	lines := o.lines
	o.lines = nil
	o.mu.Unlock()
	if len(lines) > 0 {
		_, _ = o.to.Write(lines) // there is no place to report it
	}
}

// tellDropped reports the bytes that were dropped since the last report, by process.
func (o *outputs) tellDropped() {
	o.mu.Lock()
	dropped := append([]int(nil), o.dropped...)
	clear(o.dropped)
	o.mu.Unlock()
	for i, n := range dropped {
		if n > 0 {
			o.tell("%d bytes that function %d wrote were dropped: it writes more than --lambda-output allows, or than is read", n, i+1)
		}
	}
}

// close writes the waiting lines. It gives up if they are not read; then the goroutine ends with
// the program.
func (o *outputs) close() {
	close(o.ended)
	late := time.NewTimer(shellexec.Grace)
	defer late.Stop()
	select {
	case <-o.done:
	case <-late.C:
	}
}

// processOutput takes the lines of the processes of one number, one after the other.
type processOutput struct {
	of     *outputs
	number int
	room   outputRoom
}

// Write passes a line on, or drops it. It never waits.
func (p *processOutput) Write(line []byte) (int, error) {
	o := p.of
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rate > 0 && !p.room.take(len(line), o.rate, time.Now()) || len(o.lines)+len(line) > outputWaiting {
		o.dropped[p.number-1] += len(line)
		return len(line), nil
	}
	o.lines = append(o.lines, line...)
	select {
	case o.some <- struct{}{}:
	default:
	}
	return len(line), nil
}

// outputRoom is the number of bytes that a process may write now. It grows with time, up to a
// burst.
type outputRoom struct {
	left float64
	at   time.Time // when left was right; zero before the first line
}

// take reserves n bytes, all or none.
func (r *outputRoom) take(n, rate int, now time.Time) bool {
	most := float64(rate) * outputBurst
	if r.at.IsZero() {
		r.left = most
	} else if now.After(r.at) {
		r.left = min(r.left+now.Sub(r.at).Seconds()*float64(rate), most)
	}
	r.at = now
	if float64(n) > r.left {
		return false
	}
	r.left -= float64(n)
	return true
}

// parseOutputRate parses bytes per second. The longest line has to fit a burst.
func parseOutputRate(s string) (int, error) {
	n, err := cli.ParseSize(s)
	if err == nil && n > 0 && n < 1<<10 {
		err = errors.New("no line would fit")
	}
	return n, err
}

// longestOutputLine is where a line of a function's output is cut.
const longestOutputLine = 8 << 10

// prefixed writes whole lines with something in front, so that those of many processes do not mix.
// The end of a long line is cut off.
type prefixed struct {
	w      io.Writer
	prefix string
	line   []byte
	long   bool
}

// Write never fails, so that a process does not end because its output is not read.
func (p *prefixed) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		if room := longestOutputLine - len(p.line); len(part) > room {
			part, p.long = part[:room], true
		}
		p.line = append(p.line, part...)
		if ended {
			p.flush()
		}
		b = rest
	}
	return n, nil
}

// flush writes the line that has begun.
func (p *prefixed) flush() {
	if len(p.line) == 0 {
		return
	}
	out := append([]byte(p.prefix), p.line...)
	if p.long {
		out = append(out, " …"...)
	}
	_, _ = p.w.Write(append(out, '\n'))
	p.line, p.long = p.line[:0], false
}
