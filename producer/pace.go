package producer

import (
	"cmp"
	"math"
	"time"
)

// The limits of a shard.
const (
	shardBytes   = 1 << 20 // a second
	shardRecords = 1000    // a second
)

// These parameters determine how a pace reacts to refusals. Several producers that share a shard
// get equal shares of it, because all shares grow by the same amount, and a cut takes more from a
// large share. TestProducersShareAShard measures the result.
const (
	firstShare  = 0.25  // default of Options.FirstShare
	leastShare  = 0.005 // one container of 25,000 bytes in 5 s
	keptShare   = 0.7   // a cut multiplies the share by it
	growth      = 0.002 // of the share, in the first second after a cut
	growthAfter = 15.0  // seconds after which it grows twice as fast
	burst       = 0.25  // seconds for which tokens are saved up
)

// pace limits the rate of sending to a shard. It has tokens for bytes and records, which grow at a
// share of the shard's limits. A zero pace has not been used.
type pace struct {
	shards float64 // number of shards that it covers; 0 counts as one
	first  float64 // share at the start; 0 is firstShare

	share          float64 // at the time of from
	from           time.Time
	cut            bool    // share was cut
	bytes, records float64 // tokens at the time of at; negative after a large record
	at             time.Time
}

// shareAt returns the share of the shard's limits.
func (p *pace) shareAt(now time.Time) float64 {
	if p.from.IsZero() {
		return cmp.Or(p.first, firstShare)
	}
	t := max(0, now.Sub(p.from).Seconds())
	if !p.cut {
		return min(1, p.share*math.Exp2(min(t, 10)))
	}
	return min(1, p.share+growth*(t+t*t*t/(3*growthAfter*growthAfter)))
}

// scale returns the allowed rate as a multiple of one shard's limits.
func (p *pace) scale(now time.Time) float64 { return p.shareAt(now) * max(1, p.shards) }

// refill adds the tokens for the time that passed.
func (p *pace) refill(now time.Time) {
	if p.from.IsZero() {
		p.share, p.from, p.at = p.shareAt(now), now, now
		p.bytes, p.records = p.room(now)
		return
	}
	t := max(0, now.Sub(p.at).Seconds())
	rate := p.scale(now)
	bytes, records := p.room(now)
	p.bytes = min(bytes, p.bytes+t*rate*shardBytes)
	p.records = min(records, p.records+t*rate*shardRecords)
	p.at = now
}

// room returns the maximum of saved tokens.
func (p *pace) room(now time.Time) (bytes, records float64) {
	rate := p.scale(now)
	return burst * rate * shardBytes, max(1, burst*rate*shardRecords)
}

// wait returns how long to wait until bytes and records can be sent. A sending that needs more
// tokens than the maximum goes out when the maximum is reached, and the next sending waits longer.
func (p *pace) wait(now time.Time, bytes, records int) time.Duration {
	p.refill(now)
	roomBytes, roomRecords := p.room(now)
	rate := p.scale(now)
	// The tolerance of 1 byte and 0.001 records is for rounding errors.
	lack := max(
		(min(float64(bytes), roomBytes)-1-p.bytes)/(rate*shardBytes),
		(min(float64(records), roomRecords)-0.001-p.records)/(rate*shardRecords),
	)
	if lack <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(lack * float64(time.Second)))
}

// fits reports whether a record of the given size can join other records of the same request.
func (p *pace) fits(bytes int) bool { return p.bytes >= float64(bytes) && p.records >= 1 }

// use removes the tokens of a sending.
func (p *pace) use(bytes, records int) {
	p.bytes -= float64(bytes)
	p.records -= float64(records)
}

// throttled cuts the share after a refusal of a request that was sent at the given time. It ignores
// requests that were sent before the last cut.
func (p *pace) throttled(sent, now time.Time) {
	p.refill(now)
	p.bytes, p.records = min(p.bytes, 0), min(p.records, 0)
	if p.cut && sent.Before(p.from) {
		return
	}
	p.share, p.from, p.cut = max(leastShare, keptShare*p.shareAt(now)), now, true
}

// unit is the size of a PUT payload unit in bytes. The service bills records by these units.
const unit = 25_000

// containerSize returns the maximum size of a container, with its key. The size is a multiple of
// the payload unit. It grows with the round trip, so that a shard with one container in flight uses
// the pace fully. At a low pace containers are small, so that a refusal concerns few records.
func containerSize(roundTrip time.Duration, share float64, largest int) int {
	const usual = 45 * time.Millisecond
	need := max(usual, roundTrip*5/4).Seconds() * share * shardBytes
	size := unit * int(math.Ceil(need/unit))
	return min(max(size, unit), largest)
}
