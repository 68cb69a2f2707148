package behaviour

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A stream that was deleted and created again is read from its beginning within seconds, and not
// only after the next regular listing, which is a minute after the last one.
func TestARecreatedStreamIsReadWithinSeconds(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for _, away := range []time.Duration{0, 2 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprint(reading, " after ", away), func(t *testing.T) {
				bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
					store := memstore.New()
					s := &seen{data: map[string]int{}}
					opts := weir.Options{FanOut: weir.FanOut{Mode: reading}}
					first, second := opts, opts
					first.Worker, second.Worker = "one", "two"
					stop := start(t, srv.Client(), store, first, s.handle)
					stop2 := start(t, srv.Client(), store, second, s.handle)
					for i := range 20 {
						srv.Put("s", fmt.Sprint(i), []byte("old"))
					}
					time.Sleep(70 * time.Second)
					srv.DeleteStream("s")
					time.Sleep(away)
					srv.CreateStream("s", 2)
					for i := range 20 {
						srv.Put("s", fmt.Sprint(i), []byte("new"))
					}
					took := until(t, "the new records are handled", 2*time.Minute, func() bool {
						return s.count("s new") >= 20
					})

					if took > 20*time.Second {
						t.Errorf("it took %v, want at most 20 s", took)
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
					if err := stop2(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func (s *seen) count(of string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data[of]
}
