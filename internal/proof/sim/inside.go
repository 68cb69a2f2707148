package sim

import (
	"reflect"

	"github.com/weir-go/weir/internal/lock"
)

// checkInside checks three things after each step: that workers lock mutexes in the right order,
// which needs the build tag lockranks, that none of their counters decreases, and that records
// which got no dead letter do not count as dead-lettered.
func (w *world) checkInside() {
	for _, found := range lock.Violations() {
		w.breaks("%s", found)
	}
	for _, wk := range w.workers {
		l := wk.life
		if l == nil || l.consumer == nil {
			continue
		}
		now := l.consumer.Counts()
		if name := wentBack(&l.counted, &now); name != "" {
			w.breaks("%s counts backwards: %s", l.who, name)
		}
		if w.letters != nil && now.RecordsDeadLettered > uint64(l.lettered) {
			w.breaks("%s counts %d dead-lettered records, and %d dead letters were stored for it", l.who, now.RecordsDeadLettered, l.lettered)
		}
		l.counted = now
	}
}

// wentBack returns the name of a counter that has decreased. It returns "" if no counter has
// decreased.
func wentBack(before, now any) string {
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(now).Elem()
	for i := range is.NumField() {
		if f := is.Field(i); f.CanUint() && f.Uint() < was.Field(i).Uint() {
			return is.Type().Field(i).Name
		}
	}
	return ""
}
