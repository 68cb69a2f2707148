package behaviour

import (
	"context"
	"reflect"
	"testing"

	"github.com/weir-go/weir"
)

func TestEveryEventReachesBoth(t *testing.T) {
	set := func(n *int) (e weir.Events) {
		v := reflect.ValueOf(&e).Elem()
		for i := range v.NumField() {
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value { *n++; return nil }))
		}
		return e
	}
	call := func(e weir.Events) {
		v := reflect.ValueOf(e)
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				t.Errorf("%s is nil", v.Type().Field(i).Name)
				continue
			}
			v.Field(i).Call([]reflect.Value{reflect.ValueOf(context.Background()), reflect.Zero(v.Field(i).Type().In(1))})
		}
	}
	n := reflect.TypeFor[weir.Events]().NumField()
	var first, second int
	call(set(&first).Then(set(&second)))
	call(set(&first).Then(weir.Events{}))
	call(weir.Events{}.Then(set(&second)))
	if first != 2*n || second != 2*n {
		t.Errorf("%d and %d calls, want %d of each", first, second, 2*n)
	}
	if got := (weir.Events{}).Then(weir.Events{}); !reflect.ValueOf(got).IsZero() {
		t.Error("two that are empty make one that is not")
	}
	n = 0
	weir.Events{Leading: func(context.Context, weir.Leading) { n++ }}.Then(weir.Events{Leading: func(context.Context, weir.Leading) { n *= 3 }}).Leading(t.Context(), weir.Leading{})
	if n != 3 {
		t.Error("the second came first")
	}
	n = 0
	func() {
		defer func() { _ = recover() }()
		weir.Events{Leading: func(context.Context, weir.Leading) { panic("x") }}.Then(weir.Events{Leading: func(context.Context, weir.Leading) { n++ }}).Leading(t.Context(), weir.Leading{})
	}()
	if n != 1 {
		t.Error("a panic of the first kept the second from its call")
	}
}
