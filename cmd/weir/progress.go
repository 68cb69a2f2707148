package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows how far long work has come, to people only; a nil one shows nothing.
type bar struct{ *progressbar.ProgressBar }

// newBar is for n pieces of work. Little work needs none.
func newBar(t terminal, what string, n int) bar {
	if n < 50 || !isTerminal(t.err) {
		return bar{}
	}
	return bar{progressbar.NewOptions(n,
		progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

// add is safe for concurrent use.
func (b bar) add(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n) // it can only fail to draw
	}
}

func (b bar) finish() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}
