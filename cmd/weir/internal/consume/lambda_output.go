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
	// outputRate is the default limit for the output of a process, in bytes per second.
	outputRate = 256 << 10
	// outputBurst is the maximum output that a process may write at once after a silence. The unit
	// is seconds of output at the process's rate.
	outputBurst = 10
	// outputWaiting is the maximum number of bytes, of all processes together, that wait to be
	// written.
	outputWaiting = 8 << 20
	// outputTold is the interval between reports on dropped output.
	outputTold = time.Minute
)

// outputs passes on the output of a function's processes, line by line. It drops output above a
// process's rate, and output that is not read in time. It reports the number of dropped bytes. So
// no process can fill a disk, and no process waits until its output is read. One goroutine writes
// the lines; close ends it.
type outputs struct {
	to   io.Writer
	rate int // limit in bytes per second and process; 0 means no limit
	tell func(format string, args ...any)

	some  chan struct{} // receives one element when there are lines
	ended chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	lines   []byte
	dropped []int // dropped bytes since the last report, by process
}

// passOutput returns an outputs for n processes and starts to pass on lines.
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

// write writes the waiting lines.
func (o *outputs) write() {
	o.mu.Lock()
	lines := o.lines
	o.lines = nil
	o.mu.Unlock()
	if len(lines) > 0 {
		_, _ = o.to.Write(lines) // there is nowhere to report the error
	}
}

// tellDropped reports, for each process, the number of bytes dropped since the last report.
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

// close writes the waiting lines. If they are not read in time, close returns, and the goroutine
// ends with the program.
func (o *outputs) close() {
	close(o.ended)
	late := time.NewTimer(shellexec.Grace)
	defer late.Stop()
	select {
	case <-o.done:
	case <-late.C:
	}
}

// processOutput receives the lines of the processes that run in one place of the pool, one after
// another.
type processOutput struct {
	of     *outputs
	number int
	room   outputRoom
}

// Write passes a line on or drops it. It never waits.
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

// outputRoom limits the output of one process. It contains the number of bytes that the process may
// write now. The number grows with time, up to a burst.
type outputRoom struct {
	left float64
	at   time.Time // when left was correct; zero before the first line
}

// take reserves n bytes if there is room for all of them, and reports whether there was.
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

// parseOutputRate parses a number of bytes per second. The rate must be high enough for the longest
// line to fit into a burst.
func parseOutputRate(s string) (int, error) {
	n, err := cli.ParseSize(s)
	if err == nil && n > 0 && n < 1<<10 {
		err = errors.New("no line would fit")
	}
	return n, err
}

// longestOutputLine is the maximum length of a line in bytes. Longer lines are cut.
const longestOutputLine = 8 << 10

// prefixed writes whole lines with a prefix, so that lines of several processes do not mix. It cuts
// long lines.
type prefixed struct {
	w      io.Writer
	prefix string
	line   []byte
	long   bool
}

// Write never returns an error. Otherwise a process would end because its output is not read.
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

// flush writes the line received so far, unless it is empty.
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
