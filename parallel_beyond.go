package weir

import (
	"github.com/weir-go/weir/internal/lanes"
	"github.com/weir-go/weir/lease"
)

// With keys in parallel records are done beyond the checkpoint. A term that ends in order has that
// kept with the lease, so that the next owner need not handle them again. It is kept beside what is
// known of deaths, under the same condition: it counts at the position that it names and nowhere
// else. It names the epoch, too, so that it does not count either when somebody has moved the
// position, also to where it is, or away and back.

// noteBeyond has it kept what is done beyond the place before which everything is.
func (l *shardLoop) noteBeyond(d lease.Deaths) {
	// Who counts deaths does not trust what was handled there, and a filter that is changed in
	// between would have other records be counted.
	if l.in.opts.Filter.By == nil && d.Beyond != "" && !d.At.IsZero() && l.term.Deaths().Count == 0 {
		l.term.NoteSoon(d)
	}
}

// known tells which of the records that are read next the owner before has done.
func (l *shardLoop) known() *lanes.Known {
	h := l.handles
	if h.known == nil {
		h.known = new(lanes.Known)
		if d := l.term.Deaths(); l.in.opts.Filter.By == nil && d.Beyond != "" && d.Count == 0 {
			*h.known = lanes.ParseBeyond(d.Beyond, l.mode())
		}
	}
	if h.known.Over() {
		return nil
	}
	return h.known
}

// mode stands for what is made of aggregates, which decides which records there are.
func (l *shardLoop) mode() byte { return byte(l.in.opts.Aggregates) }
