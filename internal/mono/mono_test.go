package mono

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATimeIsWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	// The clock of the bubble differs from the clock from which origin was read.
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		then := Now()
		if then != Of(began) || then.IsZero() {
			t.Fatalf("%d at %v", then, began)
		}
		time.Sleep(90 * time.Second)
		if d := Since(then); d != 90*time.Second {
			t.Errorf("%v since", d)
		}
		if d := Until(then.Add(2 * time.Minute)); d != 30*time.Second {
			t.Errorf("%v until", d)
		}
		got := then.Time()
		if !got.Equal(began) || got.Sub(began) != 0 || got.Unix() != began.Unix() {
			t.Errorf("%v, want %v", got, began)
		}
		if later := Now(); later.Sub(then) != 90*time.Second || later <= then {
			t.Errorf("%d after %d", later, then)
		}
	})
}

func TestZeroIsNone(t *testing.T) {
	t.Parallel()
	if !Of(time.Time{}).IsZero() || !Time(0).Time().IsZero() || Until(0) != 0 {
		t.Error("zero is a time")
	}
}
