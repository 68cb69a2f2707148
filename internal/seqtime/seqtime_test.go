package seqtime

import (
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

func TestSequenceNumbersTellTimes(t *testing.T) {
	t.Parallel()
	opened, arrived, ok := Of("49590338271490256608559692540925702759324208523137515618")
	if !ok || opened.Unix() < 1_500_000_000 || arrived.Before(opened) {
		t.Errorf("a number of the service: opened %v, arrived %v, %t", opened, arrived, ok)
	}
	for _, none := range []string{"", "7", "-1", "x", "49590338271490256608559692540925702759324208523137515619", "99999999999999999999999999999999999999999999999999999999", "495903382714902566085596925409257027593242085231375156180000"} {
		if _, _, ok := Of(none); ok {
			t.Errorf("%q has times", none)
		}
	}
	s := kinesistest.NewServer(t, kinesistest.Config{})
	s.CreateStream("a", 1)
	before := time.Now().Add(-2 * time.Second)
	_, seq := s.Put("a", "k", nil)
	opened, arrived, ok = Of(seq)
	if !ok || opened.Before(before) || arrived.Before(opened) || arrived.After(time.Now()) {
		t.Errorf("a number of the embedded service: opened %v, arrived %v, %t", opened, arrived, ok)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("49590338271490256608559692540925702759324208523137515618")
	f.Fuzz(func(t *testing.T, text string) {
		opened, arrived, ok := Of(text)
		if ok != !opened.IsZero() || !arrived.IsZero() && arrived.Before(opened) {
			t.Errorf("%q: opened %v, arrived %v, %t", text, opened, arrived, ok)
		}
	})
}
