package otelweir

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/weir-go/weir"
)

// mostErrorCode is the maximum length of an error code in an attribute.
const mostErrorCode = 64

// typeOf returns a short name for the type of an error. It never returns the text of the error,
// because the text may contain any data.
func typeOf(err error) string {
	var panicked *weir.PanicError
	var coded interface{ ErrorCode() string }
	switch {
	case errors.Is(err, weir.ErrLeaseLost):
		return "lease_lost"
	case errors.Is(err, weir.ErrStalled):
		return "stalled"
	case errors.Is(err, weir.ErrStopping):
		return "stopping"
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &coded) && isCode(coded.ErrorCode()):
		return coded.ErrorCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	if of := reflect.TypeOf(err); of != nil {
		switch name := fmt.Sprint(of); name {
		case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError":
		default:
			return name
		}
	}
	return "_OTHER"
}

// isCode reports whether s looks like the error code of a service: a letter, followed by letters,
// digits, dots and underscores.
func isCode(s string) bool {
	if s == "" || len(s) > mostErrorCode {
		return false
	}
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '.' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}
