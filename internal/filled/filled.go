// Package filled makes values whose fields are all set, including newly added fields. It is for
// tests of code that must pass values on.
package filled

import (
	"reflect"
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

// Value returns a T without zero fields. Slices and maps have one element.
func Value[T any](t testing.TB) T {
	t.Helper()
	var v T
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

func fill(t testing.TB, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[shard.Position](): // its fields are not exported
		v.Set(reflect.ValueOf(shard.Oldest))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1e9, 0).UTC()))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("filled: no value is known for %v", v.Type())
	}
}
