//go:build lockranks && race

package lock

import "runtime"

// quiet hides this goroutine's synchronization from the race detector until loud is called.
func quiet() { runtime.RaceDisable() }
func loud()  { runtime.RaceEnable() }
