package sinks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/sqlsink"
)

// unanswered tests a COMMIT that gets no answer. The sink abandons it, and the next attempt finds
// that it took effect.
func unanswered(t *testing.T, p Place) {
	if p.Addr == "" {
		t.Skip("there is no server")
	}
	dsn := p.Fresh(t)
	db, _ := p.readyAt(t, dsn)
	proxy := servers.NewProxy(t, p.Addr)
	s := p.sink(t, p.open(t, strings.Replace(dsn, p.Addr, proxy.Addr, 1)), sqlsink.Options{})
	h := term(t, s, 1, apply)
	held := false
	proxy.HoldAnswers(func(said []byte) bool {
		first := !held && bytes.Contains(bytes.ToUpper(said), []byte("COMMIT"))
		held = held || first
		return first
	})
	answer := make(chan error, 1)
	go func() { answer <- h.Handle(t.Context(), batch(1, 1, 3)) }()
	select {
	case err := <-answer:
		if err == nil || !strings.Contains(err.Error(), "may have taken effect") {
			t.Errorf("a COMMIT without an answer: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a COMMIT without an answer is waited for for a minute")
		proxy.CutAll()
		if err := <-answer; err != nil {
			t.Log(err)
		}
	}
	handle(t, h, batch(1, 1, 4), nil)
	want(t, db, "1 2 3 4")
	if n := s.Counts().Unknown; n != 1 {
		t.Errorf("%d commits are told as unknown, want 1", n)
	}
}
