package weir

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

// Only a guarded.Store holds the user's store: no other field that a run can reach has the type of
// a store.
func TestARunReachesItsStoreOnlyThroughTheGuard(t *testing.T) {
	t.Parallel()
	store, historian := reflect.TypeFor[lease.Store](), reflect.TypeFor[lease.Historian]()
	seen := map[reflect.Type]bool{}
	guards := 0
	var walk func(of reflect.Type, path string)
	walk = func(of reflect.Type, path string) {
		switch {
		case of == store || of == historian:
			if !strings.Contains(path, "/guarded Store.") {
				t.Errorf("%s is a store without a guard", path)
			}
			guards++
			return
		case seen[of]:
			return
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			walk(of.Elem(), path)
		case reflect.Map:
			walk(of.Key(), path)
			walk(of.Elem(), path)
		case reflect.Struct:
			if !strings.HasPrefix(of.PkgPath(), "github.com/weir-go/weir") {
				return
			}
			for i := range of.NumField() {
				f := of.Field(i)
				walk(f.Type, path+" "+of.PkgPath()+" "+of.Name()+"."+f.Name)
			}
		}
	}
	walk(reflect.TypeFor[adapter](), "")
	if guards != 2 {
		t.Errorf("found %d fields of a store's type, not the two of the guard", guards)
	}
}
