package weir

// Poison has reused buffers filled with nonsense once they are released, or not.
func Poison(on bool) { poison.Store(on) }
