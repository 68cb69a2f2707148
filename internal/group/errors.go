package group

import "errors"

var (
	// ErrLeaseLost ends the context of a term whose lease this worker cannot trust any more.
	ErrLeaseLost = errors.New("weir: the lease is lost")
	// ErrStopping ends the context of a term whose handler did not finish within the stop timeout.
	ErrStopping = errors.New("weir: the worker stops")
)
