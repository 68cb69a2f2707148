package demo

import (
	"context"
	"io"
)

func RunLive(ctx context.Context, o Options, in io.Reader, out io.Writer, interrupt func()) (Result, error) {
	o.Show = &Plain{Out: out}
	return Run(ctx, o)
}
