package window

import (
	"context"

	"github.com/weir-go/weir"
)

// read computes the windows of a shard until the lease or the shard ends.
func (c *Config[S]) read(ctx context.Context, s *weir.Puller) error {
	o := &open[S]{Config: c, term: s.Term, upTo: s.From, panes: panes[S]{}}
	var told *mark[S] // the mark that was last reported as holding the checkpoint
	for b, err := range s.Batches() {
		if err != nil {
			return nil // the next owner reads the records of open windows again
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
			return c.Emit(ctx, o.end()) // weir marks the shard as ended when Pull returns
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

// emit delivers ended windows and then moves the checkpoint.
func (c *Config[S]) emit(ctx context.Context, s *weir.Puller, ended []Results[S]) error {
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
