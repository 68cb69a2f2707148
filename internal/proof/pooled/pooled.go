// Package pooled checks in tests that a reused object equals a new one. A test fills every field of
// the object, resets the object, and compares it with a new object.
package pooled

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// depth is how many pointers Fill follows from a field, one after the other.
const depth = 1

// Fill sets every field of *p, including unexported fields, to a value that is not zero. It skips
// mutexes, atomic values, and fields whose names are in kept.
func Fill(p any, kept ...string) { fill(settable(reflect.ValueOf(p).Elem()), depth, kept) }

func fill(v reflect.Value, left int, kept []string) {
	switch v.Kind() {
	case reflect.Struct:
		if isLock(v.Type()) {
			return
		}
		for i := range v.NumField() {
			if !contains(kept, v.Type().Field(i).Name) {
				fill(settable(v.Field(i)), left, kept)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(settable(v.Index(i)), left, kept)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("stale")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(7)
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), 3, 5)
		if left > 0 {
			for i := range s.Len() {
				fill(s.Index(i), left-1, kept)
			}
		}
		v.Set(s)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if left > 0 {
			fill(p.Elem(), left-1, kept)
		}
		v.Set(p)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, v.Type().Elem()), 1).Convert(v.Type()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface:
		for _, some := range []any{errors.New("stale"), context.Background(), "stale"} {
			if of := reflect.ValueOf(some); of.Type().AssignableTo(v.Type()) {
				v.Set(of)
				return
			}
		}
	}
}

// Differences returns the names of the fields in which *got differs from *fresh. It skips the
// fields in kept. An empty slice equals nil if its spare memory is cleared. Spare memory of bytes
// need not be cleared.
func Differences(got, fresh any, kept ...string) []string {
	return differences("", reflect.ValueOf(got).Elem(), reflect.ValueOf(fresh).Elem(), kept)
}

func differences(path string, got, fresh reflect.Value, kept []string) (all []string) {
	got, fresh = settable(got), settable(fresh)
	switch {
	case got.Kind() == reflect.Struct && isLock(got.Type()):
		return nil
	case got.Kind() == reflect.Struct:
		for i := range got.NumField() {
			name := got.Type().Field(i).Name
			if !contains(kept, name) {
				all = append(all, differences(strings.TrimPrefix(path+"."+name, "."), got.Field(i), fresh.Field(i), kept)...)
			}
		}
		return all
	case got.Kind() == reflect.Array:
		for i := range got.Len() {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), got.Index(i), fresh.Index(i), kept)...)
		}
		return all
	case got.Kind() == reflect.Slice && got.Len() == 0 && fresh.Len() == 0:
		spare := got.Slice(0, got.Cap())
		for i := 0; i < spare.Len() && hasPointers(got.Type().Elem()); i++ {
			if !spare.Index(i).IsZero() {
				return []string{path + " keeps what it held in its spare memory"}
			}
		}
		return nil
	case got.Kind() == reflect.Func:
		if got.IsNil() != fresh.IsNil() {
			return []string{path}
		}
		return nil
	}
	if !reflect.DeepEqual(got.Interface(), fresh.Interface()) {
		return []string{path}
	}
	return nil
}

// settable returns v in a form that can be set, even if v is an unexported field.
func settable(v reflect.Value) reflect.Value {
	if !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// isLock reports whether t is a mutex or an atomic value.
func isLock(t reflect.Type) bool {
	path := t.PkgPath()
	return path == "sync" || path == "sync/atomic" || strings.HasSuffix(path, "/internal/lock")
}

// hasPointers reports whether values of t can keep memory alive.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		return false
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return true
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
