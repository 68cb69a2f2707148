package group

// termState is the state of a term that the worker checks after a heartbeat.
type termState struct {
	returned, wanted, lost, finished, stalled bool
	err                                       error
}

func (t *Term) state() termState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return termState{t.returned, t.wanted, t.lost, t.finished, t.stalled, t.seldom().err}
}
