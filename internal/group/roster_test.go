package group

import (
	"reflect"
	"testing"

	"github.com/weir-go/weir/lease"
)

// Every input of a plan changes the roster, including fields that are added to Worker in the
// future.
func TestRosterSeesEveryFieldThatPlansDependOn(t *testing.T) {
	// These fields change all the time and are not inputs.
	counts := map[string]bool{"Heartbeats": true, "Holds": true, "Troubles": true}
	one := lease.Worker{Session: "s", Name: "n", Weight: 1}
	same := lease.View{Workers: []lease.Worker{one}, Paused: []string{"p"}}
	r := rosterOf(same)
	if !r.is(same) {
		t.Fatal("a view does not have its own roster")
	}
	for i := range reflect.TypeFor[lease.Worker]().NumField() {
		other := one
		name := reflect.TypeFor[lease.Worker]().Field(i).Name
		change(t, reflect.ValueOf(&other).Elem().Field(i))
		if got := r.is(lease.View{Workers: []lease.Worker{other}, Paused: same.Paused}); got != counts[name] {
			t.Errorf("with another %s the roster is taken for the same: %v, want %v", name, got, counts[name])
		}
	}
	cutOff := one
	cutOff.Troubles = []lease.Trouble{{State: lease.CutOff}}
	for what, v := range map[string]lease.View{
		"a worker that is cut off": {Workers: []lease.Worker{cutOff}, Paused: same.Paused},
		"one worker more":          {Workers: []lease.Worker{one, one}, Paused: same.Paused},
		"no worker":                {Paused: same.Paused},
		"another stream paused":    {Workers: same.Workers, Paused: []string{"q"}},
		"nothing paused":           {Workers: same.Workers},
		"one paused stream more":   {Workers: same.Workers, Paused: []string{"p", "q"}},
	} {
		if r.is(v) {
			t.Errorf("with %s it is taken for the same roster", what)
		}
	}
	again := rosterOf(lease.View{Workers: []lease.Worker{cutOff}})
	if !again.is(lease.View{Workers: []lease.Worker{cutOff}}) {
		t.Error("a view with a worker that is cut off does not have its own roster")
	}
	if n := testing.AllocsPerRun(100, func() { r.is(same) }); n > 0 {
		t.Errorf("%v allocations at each look", n)
	}
}

// change sets a field to another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			change(t, v.Field(i))
		}
	default:
		t.Fatalf("there is a field of kind %v now: say here what another value of it is", v.Kind())
	}
}
