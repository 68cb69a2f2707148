//go:build lockranks && !race

package lock

func quiet() {}
func loud()  {}
