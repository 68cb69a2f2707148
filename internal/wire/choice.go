package wire

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/wire/codec"
)

// formatState is what is known about an endpoint's formats.
type formatState uint32

const (
	// CBOR is asked for; it has not yet brought a record, or it failed since
	cborUntried formatState = iota
	cborProven              // CBOR brought records as bytes
	jsonTrial               // CBOR failed, JSON is tried
	jsonSettled             // CBOR failed and JSON did not
)

// outcome is what became of a call, as far as the format is concerned.
type outcome uint8

const (
	readEmpty   outcome = iota // an answer was read that had no record
	readRecords                // an answer with records was read
	readText                   // an answer was read whose data were base64 text where bytes belong
	// the endpoint does not take the format, or its answer could not be read
	refused
	unrelated // anything else, such as a throttle
)

// next is what is known after a call in the format of state s, and whether the same call should be
// made again at once, in the other format. One bad answer of an endpoint that has proven itself may
// be an accident: it fails the call, and the next one shows. A server is settled for JSON only
// after that worked where CBOR did not.
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

// formatChoice remembers the state of an endpoint. It may be used concurrently.
type formatChoice struct{ state atomic.Uint32 }

func (c *formatChoice) load() formatState { return formatState(c.state.Load()) }

// after notes the outcome of a call that was made in state s. Of calls that ran at once the first
// to change the state wins. changed is the format that this call made the one to use, Auto if it
// changed nothing.
func (c *formatChoice) after(s formatState, o outcome) (again bool, changed codec.Format) {
	to, again := s.next(o)
	if to == s || !c.state.CompareAndSwap(uint32(s), uint32(to)) || to.format() == s.format() {
		return again, codec.Auto
	}
	return again, to.format()
}
