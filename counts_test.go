package weir

import (
	"reflect"
	"sync/atomic"
	"testing"
)

// Counts returns each counter in one field, and sets every field.
func TestCountsOfEachCounter(t *testing.T) {
	var c Consumer
	counters := reflect.ValueOf(&c.counted).Elem()
	for i := range counters.NumField() {
		(*atomic.Uint64)(counters.Field(i).Addr().UnsafePointer()).Store(uint64(i + 1))
	}
	seen := map[uint64]string{}
	counts := reflect.ValueOf(c.Counts())
	for i := range counts.NumField() {
		name, n := counts.Type().Field(i).Name, counts.Field(i).Uint()
		if other, twice := seen[n]; twice && n > 0 {
			t.Errorf("%s and %s return one counter", name, other)
		}
		seen[n] = name
	}
	delete(seen, 0)
	if events := 3; len(seen) != counters.NumField() || counts.NumField() != len(seen)+events {
		t.Errorf("%d counters, %d of them are returned, in %d fields", counters.NumField(), len(seen), counts.NumField())
	}
}
