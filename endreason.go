package weir

// EndReason is why a term ended.
type EndReason uint8

const (
	EndLost EndReason = iota
	EndFinished
	EndHandedOff
	EndStopped
	EndStalled
)
