package window

import (
	"context"

	"github.com/weir-go/weir"
)

// read makes the windows of a shard for one term: until that or the shard ends.
func (c *Config[S]) read(ctx context.Context, s *weir.Shard) error {
	o := &open[S]{Config: c, term: s.Term, upTo: s.From, panes: panes[S]{}}
	var told *mark[S] // where the checkpoint is said to be held
	for b, err := range s.Batches() {
		if err != nil {
			return nil // the next owner reads what is open again
		}
		for _, r := range b.Records {
			p, err := c.place(r)
			if err != nil {
				return err
			}
			if err := c.emit(ctx, s, o.before(r, &p)); err != nil {
				return err
			}
			if err := o.add(ctx, r, p); err != nil {
				return err
			}
		}
		o.leave()
		if b.End {
			return c.Emit(ctx, o.end()) // weir notes the end when Pull returns
		}
		if err := c.emit(ctx, s, o.tip(b.Tip)); err != nil {
			return err
		}
		if first := o.first(); first != told {
			told = first
			if first == nil {
				s.Hold("")
			} else {
				s.Hold("by an open window")
			}
		}
	}
	return nil
}

// emit hands over what has ended, and moves on.
func (c *Config[S]) emit(ctx context.Context, s *weir.Shard, ended []Results[S]) error {
	for _, r := range ended {
		if err := c.Emit(ctx, r); err != nil {
			return err
		}
		if err := s.Done(r.UpTo); err != nil {
			return err
		}
	}
	return nil
}
