//go:build lockranks && race

package lock

import "runtime"

// quiet has the race detector overlook what this goroutine synchronizes with, until loud.
func quiet() { runtime.RaceDisable() }
func loud()  { runtime.RaceEnable() }
