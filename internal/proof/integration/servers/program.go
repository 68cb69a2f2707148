package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Run lets a program that is not a test start servers. f receives a replacement for a test. When f
// returns, Run ends the replacement and all of its servers. The error of Run reports failures of
// the servers. The end of ctx does not interrupt f; f must check ctx.
func Run(ctx context.Context, f func(t testing.TB)) error {
	p := &stand{}
	p.ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { // Fatal ends it early
		defer close(done)
		defer p.cleanUp()
		f(p)
	}()
	<-done
	return errors.Join(p.errs...)
}

// stand is a [testing.TB] for servers in a program. Servers do not use the missing methods.
type stand struct {
	testing.TB
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	errs  []error
	after []func()
}

func (p *stand) cleanUp() {
	p.end()
	for {
		p.mu.Lock()
		last := len(p.after) - 1
		if last < 0 {
			p.mu.Unlock()
			return
		}
		f := p.after[last]
		p.after = slices.Delete(p.after, last, last+1)
		p.mu.Unlock()
		f()
	}
}

func (p *stand) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

func (p *stand) Helper()                  {}
func (p *stand) Context() context.Context { return p.ctx }
func (p *stand) Log(...any)               {}
func (p *stand) Logf(string, ...any)      {}
func (p *stand) Error(args ...any)        { p.note(errors.New(fmt.Sprint(args...))) }
func (p *stand) Errorf(format string, args ...any) {
	p.note(fmt.Errorf(format, args...))
}

func (p *stand) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

func (p *stand) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf fails: it is called if a server was not fetched, but the program needs it.
func (p *stand) Skipf(format string, args ...any) { p.Fatalf(format, args...) }

func (p *stand) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.errs) > 0
}

func (p *stand) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = append(p.after, f)
}

func (p *stand) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-server-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.Error(err)
		}
	})
	return dir
}
