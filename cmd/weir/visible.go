package main

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// visible is a name from a store, a service or a command line as people may see it: what is no
// character to be read, such as what breaks a line or steers a terminal, is written as Go writes it
// in a string.
func visible(s string) string { return escape(s, "") }

// escape is visible, but for some characters.
func escape(s, but string) string {
	readable := func(r rune) bool { return strconv.IsPrint(r) || strings.ContainsRune(but, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !readable(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if size > 1 && readable(r) || size == 1 && r != utf8.RuneError && readable(r) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// textf writes text for people. Every argument that is text is made visible, so that only format
// itself breaks lines and fills cells.
func textf(w io.Writer, format string, args ...any) error {
	shown := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			shown[i] = visible(a)
		case fmt.Stringer:
			shown[i] = visible(a.String())
		default:
			shown[i] = a
			if of := reflect.ValueOf(a); of.Kind() == reflect.String { // such as the reason in a letter
				shown[i] = visible(of.String())
			}
		}
	}
	_, err := fmt.Fprintf(w, format, shown...)
	return err
}
