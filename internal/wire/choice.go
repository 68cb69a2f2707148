package wire

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/wire/codec"
)

// formatState is what is known about an endpoint's formats.
type formatState uint32

const (
	// CBOR is used; it has not yet returned a record, or it failed since
	cborUntried formatState = iota
	cborProven              // CBOR returned records as bytes
	jsonTrial               // CBOR failed, JSON is tried
	jsonSettled             // CBOR failed and JSON did not
)

// outcome is the result of a call with regard to the format.
type outcome uint8

const (
	readEmpty   outcome = iota // an answer without records was read
	readRecords                // an answer with records was read
	readText                   // an answer was read whose data were base64 text instead of bytes
	// the endpoint does not accept the format, or its answer could not be read
	refused
	unrelated // anything else, such as a throttle
)

// next returns the state after a call in the format of state s, and whether to repeat the call at
// once in the other format. If an endpoint's CBOR is proven, one bad answer may be an accident: the
// call fails, and the next call decides. JSON is settled only after it worked where CBOR did not.
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

// formatChoice holds the state of an endpoint. It may be used concurrently.
type formatChoice struct{ state atomic.Uint32 }

func (c *formatChoice) load() formatState { return formatState(c.state.Load()) }

// after records the outcome of a call that was made in state s. Of concurrent calls the first one
// that changes the state wins. changed is the new format, or Auto if the format did not change.
func (c *formatChoice) after(s formatState, o outcome) (again bool, changed codec.Format) {
	to, again := s.next(o)
	if to == s || !c.state.CompareAndSwap(uint32(s), uint32(to)) || to.format() == s.format() {
		return again, codec.Auto
	}
	return again, to.format()
}
