// Package lock provides the mutexes of the engine and defines their order.
//
// Each mutex has a rank. A goroutine that holds a mutex may only take mutexes of lower ranks, so
// two goroutines never wait for each other. It must hold no mutex while it calls user code, the
// store or Kinesis; see [Free].
//
// Without build tags, a [Mutex] is a [sync.Mutex] and Free does nothing. With the tag lockranks,
// each Lock checks the order. make race, the simulation and the mutants set the tag.
package lock

import (
	"reflect"
	"strings"
)

// A Rank is a place in the order of mutexes. A [Mutex] has it as type argument.
type Rank interface {
	// Number returns the rank. Mutexes of higher ranks must be taken first.
	Number() int
}

// Name returns the name of a rank.
func Name(r Rank) string { return strings.ToLower(reflect.TypeOf(r).Name()) }
