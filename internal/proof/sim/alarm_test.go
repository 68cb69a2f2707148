package sim

import (
	"testing"
	"testing/synctest"
	"time"
)

// An alarm fires at its time even if an earlier event happens first. It need not be set again.
func TestAlarmsFireAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarms
		defer a.stop()
		began := time.Now()
		now := func() int64 { return int64(time.Since(began)) }
		wait := func(at int64) {
			t.Helper()
			<-a.next(at, now())
			if a.over(); now() != at {
				t.Fatalf("an alarm for %d fires at %d", at, now())
			}
		}
		first := a.next(100, 0)
		second := a.next(40, 0)
		time.Sleep(10 * time.Nanosecond)
		wait(30)
		if a.next(40, now()) != second {
			t.Error("an alarm that is set is set again")
		}
		wait(40)
		if a.next(100, now()) != first {
			t.Error("the alarm of before is set no more")
		}
		a.next(70, now())
		if a.next(60, now()); a.set != 3 {
			t.Errorf("%d alarms are set, want those for 100, 70 and 60", a.set)
		}
		wait(60)
		wait(70)
		wait(100)
		a.next(130, now())
		a.next(120, now())
		time.Sleep(30 * time.Nanosecond) // both fire, and no one reads them
		wait(150)
		if a.set != 0 || len(a.all) != 3 {
			t.Errorf("%d alarms are set of %d, want 0 of 3", a.set, len(a.all))
		}
	})
}
