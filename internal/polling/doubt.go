package polling

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// doubt describes a position whose record may have expired. Reading begins at the record itself.
// The first record that arrives shows whether that record has expired.
type doubt struct {
	at  shard.Position
	err error // the error that indicates expiry, if there was one
}

// Begin makes the first iterator or subscription start at the record of the position, and not after
// it. The first answer then shows whether that record still exists.
func (p *Poll) Begin() {
	if p.begun {
		return
	}
	p.begun = true
	if p.From.Kind() == shard.Sequence {
		p.doubt = &doubt{at: p.From}
	}
}

// InDoubt reports whether reading begins at the record of the position, to check that it still
// exists.
func (p *Poll) InDoubt() bool { return p.doubt != nil && p.doubt.at == p.From }

// Resolve examines the first record that arrives after reading began at a position in doubt.
func (p *Poll) Resolve(first *source.Record) {
	if p.doubt == nil {
		return
	}
	at, refusal := p.doubt.at, p.doubt.err
	p.doubt = nil
	if refusal == nil && first.SequenceNumber == at.SequenceNumber() {
		return
	}
	next, err := shard.Before(strings.Clone(first.SequenceNumber))
	if err != nil {
		return // check rejects the page for this error
	}
	e := source.Expiry{At: at, Next: next, From: arrivalOf(at.SequenceNumber()), Err: refusal}
	if first.Arrival > 0 {
		e.To = time.UnixMilli(first.Arrival)
	}
	p.tell(e)
}

// leave handles a position that the service refuses with an error. It moves the position as
// IfExpired requires. It returns false if the position stays.
func (p *Poll) leave(ctx context.Context, refusal error) bool {
	if p.From.Kind() != shard.Sequence {
		return false
	}
	switch p.IfExpired {
	case source.OldestExpired:
		p.doubt = &doubt{p.From, refusal}
		p.From = shard.Oldest
	case source.LatestExpired:
		ctx, cancel := context.WithTimeout(ctx, streams.CallTimeout)
		defer cancel()
		date, err := streams.Now(ctx, p.Client, p.Stream)
		if err != nil || date.IsZero() {
			return false
		}
		e := source.Expiry{At: p.From, Next: shard.At(date), From: arrivalOf(p.From.SequenceNumber()), To: date, Err: refusal}
		p.doubt = nil
		p.From = e.Next
		p.tell(e)
	default:
		return false
	}
	return true
}

func (p *Poll) tell(e source.Expiry) {
	if p.Listener != nil {
		p.Listener.Expired(e)
	}
}

func noPosition(at shard.Position, err error) error {
	if errors.Is(err, source.ErrNoPosition) {
		return err
	}
	return fmt.Errorf("%w %s: %w", source.ErrNoPosition, at, err)
}

// arrivalOf returns the arrival time that a sequence number contains, accurate to some seconds. It
// returns zero if the number has another layout. AWS does not document this layout, so use the
// result only for reports.
func arrivalOf(seq string) time.Time {
	n, ok := new(big.Int).SetString(seq, 10)
	if !ok || len(seq) != 56 {
		return time.Time{}
	}
	hex := n.Text(16)
	if len(hex) != 47 || hex[0] != '2' || hex[46] != '2' {
		return time.Time{}
	}
	seconds, ok := new(big.Int).SetString(hex[29:38], 16)
	if !ok {
		return time.Time{}
	}
	t := time.Unix(seconds.Int64(), 0)
	if t.Year() < 2000 || t.Year() > 2100 {
		return time.Time{}
	}
	return t
}
