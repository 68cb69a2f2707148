package wire

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/wire/codec"
)

// formatState is the knowledge about which formats an endpoint supports.
type formatState uint32

const (
	// cborUntried uses CBOR. No call has returned a record in CBOR yet, or CBOR has failed after
	// its last record.
	cborUntried formatState = iota
	cborProven              // CBOR has returned records as bytes
	jsonTrial               // CBOR failed, and JSON is being tried
	jsonSettled             // CBOR failed, and JSON worked
)

// outcome is the result of a call, as far as it concerns the format.
type outcome uint8

const (
	readEmpty   outcome = iota // the answer was read and has no records
	readRecords                // the answer was read and has records
	readText                   // the answer was read, but its data are base64 text and not bytes
	// refused means that the endpoint rejects the format, or that its answer cannot be read.
	refused
	unrelated // any other result, such as throttling
)

// next returns the state after a call that was made in state s. again requests an immediate second
// call in the other format. Once an endpoint's CBOR has worked, a single bad answer may be an
// accident. That call fails, and the next call decides. JSON becomes permanent only after it worked
// where CBOR failed.
func (s formatState) next(o outcome) (to formatState, again bool) {
	switch s {
	case cborUntried:
		switch o {
		case readRecords:
			return cborProven, false
		case readText:
			return jsonTrial, false
		case refused:
			return jsonTrial, true
		}
	case cborProven:
		switch o {
		case readText:
			return jsonTrial, false
		case refused:
			return cborUntried, false
		}
	case jsonTrial:
		switch o {
		case readRecords, readEmpty:
			return jsonSettled, false
		case refused:
			return cborUntried, false
		}
	}
	return s, false
}

func (s formatState) format() codec.Format {
	if s == jsonTrial || s == jsonSettled {
		return codec.JSON
	}
	return codec.CBOR
}

// formatChoice contains the format state of an endpoint. It may be used concurrently.
type formatChoice struct{ state atomic.Uint32 }

func (c *formatChoice) load() formatState { return formatState(c.state.Load()) }

// after records the outcome of a call that was made in state s. If concurrent calls would change
// the state, only the first one does. changed is the new format, or Auto if the format is the same.
func (c *formatChoice) after(s formatState, o outcome) (again bool, changed codec.Format) {
	to, again := s.next(o)
	if to == s || !c.state.CompareAndSwap(uint32(s), uint32(to)) || to.format() == s.format() {
		return again, codec.Auto
	}
	return again, to.format()
}
