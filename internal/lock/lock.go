// Package lock provides the mutexes of the engine and defines the order in which they may be taken.
//
// Each mutex has a rank. A goroutine that holds one may only take mutexes of lower ranks, so no two
// goroutines can wait for each other. It must hold none when it calls the user's code, the store or
// the service; see [Free].
//
// Built without tags a [Mutex] is a [sync.Mutex] and Free does nothing. With the tag lockranks each
// Lock checks the order. make race, the simulation and the mutants set the tag.
package lock

import (
	"reflect"
	"strings"
)

// A Rank is a place in the order of mutexes. Its type is the argument of a [Mutex].
type Rank interface {
	// Number returns the rank. Mutexes of higher ranks are taken first.
	Number() int
}

// Name returns the name of a rank.
func Name(r Rank) string { return strings.ToLower(reflect.TypeOf(r).Name()) }
