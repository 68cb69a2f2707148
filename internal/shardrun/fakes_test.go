package shardrun

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/source"
)

// fakeUser is the code of a user whose shards have one handler: handle.
type fakeUser struct {
	handle func(p delivery.Part) error
}

func (u *fakeUser) Open(context.Context, *group.Term, Position) (Handler, error) {
	return nil, errors.New("not used")
}
func (u *fakeUser) Shared() Handler { return &fakeHandler{user: u} }
func (u *fakeUser) Position(context.Context, string, string) (p Position, err error) {
	return p, nil
}
func (u *fakeUser) PutLetters(context.Context, []deadletter.Letter) error { return nil }
func (u *fakeUser) Match(*source.Record) (matches, isJSON bool, err error) {
	return true, true, nil
}
func (u *fakeUser) PanicIn(error) Panic    { return Panic{} }
func (u *fakeUser) Reject(err error) error { return err }

// fakeHandler is a Handler. If pulling is set, the handler is a function that pulls.
type fakeHandler struct {
	user    *fakeUser
	pulling *pull.Progress
}

func (h *fakeHandler) Hand(of *delivery.Delivery) *Handover {
	if of == nil {
		of = new(delivery.Delivery)
	}
	return &Handover{Delivery: of, Code: fakeCode{h.user}}
}
func (h *fakeHandler) Pulling() *pull.Progress                      { return h.pulling }
func (h *fakeHandler) Close(context.Context, event.EndReason) error { return nil }

type fakeCode struct{ user *fakeUser }

func (c fakeCode) First([]source.Record)                {}
func (c fakeCode) Keyed([]source.Record)                {}
func (c fakeCode) Reuse()                               {}
func (c fakeCode) Call(p delivery.Part) error           { return c.user.handle(p) }
func (c fakeCode) Blame(error) ([]delivery.Named, bool) { return nil, false }
func (c fakeCode) Forget()                              {}
func (c fakeCode) Release()                             {}

// fakeRun is a run that does nothing.
type fakeRun struct{ pages Pages }

func (r fakeRun) Await(*Loop) bool                             { return true }
func (r fakeRun) End(*Loop)                                    {}
func (r fakeRun) Stopping()                                    {}
func (r fakeRun) IsStopping() bool                             { return false }
func (r fakeRun) StreamGone(string, error)                     {}
func (r fakeRun) StreamBack(string)                            {}
func (r fakeRun) Throttled(*Loop, time.Duration)               {}
func (r fakeRun) Setup(string) *source.Setup                   { return nil }
func (r fakeRun) Pages(*Loop, Position) Pages                  { return r.pages }
func (r fakeRun) LogPanic(*slog.Logger, string, error, ...any) {}

// shared returns the Shared of loops whose handler is handle.
func shared(t *testing.T, c Config, handle func(p delivery.Part) error) *Shared {
	log := slog.New(slog.DiscardHandler)
	return &Shared{
		Config: c, User: &fakeUser{handle}, Run: fakeRun{new(onePage)}, Counters: new(Counters),
		Log: log, Repeats: log, Values: t.Context(), Budget: memory.New(1 << 20), Slots: keyed.NewSlots(1),
	}
}

// onePage is a source with a single page, which Next returns after wait has returned.
type onePage struct {
	wait func(ctx context.Context)
	page source.Page
	read bool
}

func (p *onePage) Next(ctx context.Context) (source.Page, error) {
	if p.read {
		return source.Page{}, source.ErrEmpty
	}
	p.wait(ctx)
	p.read = true
	return p.page, nil
}

func (p *onePage) Last(context.Context) (source.Page, error) { return source.Page{}, source.ErrEmpty }
func (p *onePage) Status() source.Status                     { return source.Status{} }
func (p *onePage) Stop()                                     {}
func (p *onePage) Close()                                    {}
