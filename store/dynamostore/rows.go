package dynamostore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// These are the attributes of rows. An absent attribute is empty, zero or false.
const (
	attrApp = "app" // partition key
	attrRow = "row" // sort key

	// The following attributes belong to leases.
	attrEpoch       = "epoch"
	attrOwner       = "owner"
	attrHeir        = "heir"
	attrRevoked     = "revoked"
	attrLast        = "last"
	attrShunned     = "shunned"
	attrDeaths      = "deaths"  // in the form of lease.Deaths
	attrNumbers     = "numbers" // see lease.Lease.Numbers
	attrLoad        = "load"
	attrRate        = "rate"
	attrBorn        = "born"
	attrPosition    = "position"    // for people and for reading
	attrPositionKey = "positionKey" // shard.Position.SortKey, for conditions
	attrParents     = "parents"
	attrRangeStart  = "rangeStart"
	attrRangeEnd    = "rangeEnd"
	// attrWrite identifies the last write. A writer whose answer was lost can find out whether its
	// write took effect.
	attrWrite = "write"

	// The following attributes belong to workers.
	attrName      = "name"
	attrBeat      = "beat"
	attrEnded     = "ended"
	attrLeaving   = "leaving"
	attrWeight    = "weight" // as text, because DynamoDB's numbers cannot represent every float64
	attrMaxLeases = "maxLeases"
	attrHolds     = "holds"
	attrDrain     = "drain"
	attrTimes     = "times"     // in the form of lease.Times
	attrStreams   = "streams"   // in the form of lease.Streams
	attrTroubles  = "troubles"  // as JSON
	attrTold      = "told"      // incremented after the session's assignment changed
	attrNews      = "news"      // the leases that changed when attrTold was last incremented
	attrNewsAfter = "newsafter" // the value of attrTold before that
	attrFreed     = "freed"     // incremented after the session released or finished leases
	attrUnsettled = "unsettled" // set while the session releases leases, until freed is incremented

	// The following attributes belong to the leader's row.
	attrSession = "session"
	attrTerm    = "term"
	attrChanges = "changes" // incremented after an Apply or a Leave changed leases
	// attrToken distinguishes changes from those of a removed application with the same name.
	attrToken = "token"
	// attrPaused is a set of streams. Each has the prefix pausedMark, because a set cannot contain
	// an empty text.
	attrPaused = "paused"
	// attrPauseNote and a stream are the name of the attribute with the note of that pause.
	attrPauseNote = "pause:"
	attrFormat    = "format" // lease.Format; absent for 1

	// The following attribute belongs to chunks of history.
	attrData = "data"
)

const (
	leasePrefix   = "lease/"
	groupPrefix   = "group/"
	workerPrefix  = groupPrefix + "worker/"
	leaderRowKey  = groupPrefix + "leader"
	historyPrefix = "history/" // followed by the minute in ten digits and the session
)

const pausedMark = "="

// maxRowBytes is DynamoDB's limit for the sort key. The limit for the partition key is above
// [lease.MaxAppBytes].
const maxRowBytes = 1024

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}
func yes() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} }

var escapeStream = strings.NewReplacer("%", "%25", "/", "%2F")

// leaseRow returns the sort key of a lease. It escapes "/" in the stream's name, so that different
// keys have different rows.
func leaseRow(k lease.Key) string {
	return leasePrefix + escapeStream.Replace(k.Stream) + "/" + k.Shard
}

func parseLeaseRow(row string) (lease.Key, error) {
	rest, ok := strings.CutPrefix(row, leasePrefix)
	stream, id, found := strings.Cut(rest, "/")
	if !ok || !found {
		return lease.Key{}, errors.New("the sort key is not lease/STREAM/SHARD")
	}
	k := lease.Key{Stream: strings.NewReplacer("%25", "%", "%2F", "/").Replace(stream), Shard: id}
	if leaseRow(k) != row {
		return lease.Key{}, errors.New("the stream in the sort key is not escaped as it should be")
	}
	return k, nil
}

func workerRowKey(session string) string { return workerPrefix + session }

// checkRow rejects a key for which DynamoDB's error would be less clear. An escaped stream name can
// be too long.
func checkRow(what, row string) error {
	if len(row) > maxRowBytes || !utf8.ValidString(row) {
		return fmt.Errorf("dynamostore: %s %.120q must be UTF-8 and its sort key at most %d bytes, not %d", what, row, maxRowBytes, len(row))
	}
	return nil
}

// putText sets a text unless it is empty.
func putText(it item, name, value string) {
	if value != "" {
		it[name] = text(value)
	}
}

// putNumber sets a number unless it is zero.
func putNumber(it item, name string, n uint64) {
	if n != 0 {
		it[name] = number(n)
	}
}

func encodeLease(app string, l lease.Lease) item {
	it := item{
		attrApp: text(app), attrRow: text(leaseRow(l.Key)),
		attrEpoch:       number(l.Epoch),
		attrPositionKey: text(l.Position.SortKey()),
		attrRangeStart:  text(l.Range.Start.String()),
		attrRangeEnd:    text(l.Range.End.String()),
	}
	putText(it, attrOwner, l.Owner)
	putText(it, attrHeir, l.Heir)
	putText(it, attrRevoked, l.Revoked)
	putText(it, attrLast, l.Last)
	putText(it, attrShunned, l.Shunned)
	putText(it, attrDeaths, l.Deaths)
	putText(it, attrNumbers, l.Numbers)
	putNumber(it, attrLoad, uint64(l.Load))
	putNumber(it, attrRate, l.Rate)
	putNumber(it, attrBorn, uint64(l.Born))
	putText(it, attrPosition, l.Position.String())
	if len(l.Parents) > 0 {
		list := make([]types.AttributeValue, len(l.Parents))
		for i, p := range l.Parents {
			list[i] = text(p)
		}
		it[attrParents] = &types.AttributeValueMemberL{Value: list}
	}
	return it
}

func decodeLease(it item) (lease.Lease, error) {
	r := reader{it: it}
	l := lease.Lease{
		Epoch: r.number(attrEpoch, true), Owner: r.text(attrOwner), Heir: r.text(attrHeir), Revoked: r.text(attrRevoked),
		Last: r.text(attrLast), Shunned: r.text(attrShunned), Deaths: r.text(attrDeaths), Numbers: r.text(attrNumbers), Parents: r.list(attrParents),
		Load: lease.Load(r.upTo(attrLoad, uint64(lease.MaxLoad))), Born: int64(r.upTo(attrBorn, math.MaxInt64)),
		Rate: r.number(attrRate, false),
	}
	row := r.text(attrRow)
	key, err := parseLeaseRow(row)
	r.fail(attrRow, err)
	l.Key = key
	l.Position, err = shard.Parse(r.text(attrPosition))
	r.fail(attrPosition, err)
	if r.err == nil && r.text(attrPositionKey) != l.Position.SortKey() {
		r.fail(attrPositionKey, fmt.Errorf("it is not %q, as position says", l.Position.SortKey()))
	}
	l.Range, err = shard.ParseHashRange(r.text(attrRangeStart), r.text(attrRangeEnd))
	r.fail(attrRangeStart, err)
	return l, r.done()
}

// workerRow is a worker with the additional fields of this store.
type workerRow struct {
	lease.Worker
	told      uint64
	news      []string // rows of the leases in the last note; nil if it contained none
	newsAfter uint64   // the value of attrTold before that note
	freed     uint64
	unsettled bool
}

func decodeWorker(it item) (workerRow, error) {
	r := reader{it: it}
	session, ok := strings.CutPrefix(r.text(attrRow), workerPrefix)
	if !ok || session == "" {
		r.fail(attrRow, errors.New("the sort key is not group/worker/SESSION"))
	}
	w := workerRow{
		Worker: lease.Worker{
			Session: session, Name: r.text(attrName), Heartbeats: r.number(attrBeat, true), Ended: r.bool(attrEnded),
			Leaving: r.bool(attrLeaving), Drain: r.bool(attrDrain), Weight: 1, MaxLeases: int(r.upTo(attrMaxLeases, math.MaxInt)),
			Holds: r.number(attrHolds, false),
		},
		told: r.number(attrTold, false), news: r.set(attrNews), newsAfter: r.number(attrNewsAfter, false), freed: r.number(attrFreed, false), unsettled: r.bool(attrUnsettled),
	}
	if s := r.text(attrWeight); s != "" {
		weight, err := strconv.ParseFloat(s, 64)
		if err == nil && !(weight > 0 && weight <= math.MaxFloat64) {
			err = errors.New("it is not a positive number")
		}
		r.fail(attrWeight, err)
		w.Weight = weight
	}
	times, err := lease.ParseTimes(r.text(attrTimes))
	r.fail(attrTimes, err)
	w.Times, w.Streams = times, lease.Streams(r.text(attrStreams))
	if s := r.text(attrTroubles); s != "" {
		r.fail(attrTroubles, json.Unmarshal([]byte(s), &w.Troubles))
	}
	return w, r.done()
}

type leaderRow struct {
	session string
	term    uint64
	changes uint64
	token   string
	paused  []string // sorted
	notes   map[string]string
	format  uint64 // lease.Format; 0 means 1
}

func decodeLeader(it item) (leaderRow, error) {
	r := reader{it: it}
	l := leaderRow{session: r.text(attrSession), term: r.number(attrTerm, false), changes: r.number(attrChanges, false),
		token: r.text(attrToken), paused: r.set(attrPaused), format: r.number(attrFormat, false)}
	if err := lease.CheckFormat(l.format); err != nil {
		return leaderRow{}, fmt.Errorf("dynamostore: %w", err)
	}
	for i, stream := range l.paused {
		l.paused[i] = strings.TrimPrefix(stream, pausedMark)
	}
	slices.Sort(l.paused)
	for _, stream := range l.paused {
		if note := r.text(attrPauseNote + stream); note != "" {
			if l.notes == nil {
				l.notes = map[string]string{}
			}
			l.notes[stream] = note
		}
	}
	return l, r.done()
}

// reader reads attributes and keeps the first error.
type reader struct {
	it  item
	err error
}

func (r *reader) fail(name string, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("attribute %s: %w", name, err)
	}
}

func (r *reader) text(name string) string {
	switch v := r.it[name].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		r.fail(name, errors.New("it is not text"))
	}
	return ""
}

func (r *reader) number(name string, required bool) uint64 {
	switch v := r.it[name].(type) {
	case nil:
		if required {
			r.fail(name, errors.New("it is missing"))
		}
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseUint(v.Value, 10, 64)
		if err != nil {
			r.fail(name, fmt.Errorf("%.40q is not a whole number from 0 to 2^64-1", v.Value))
		}
		return n
	default:
		r.fail(name, errors.New("it is not a number"))
	}
	return 0
}

// upTo reads an optional number with a maximum.
func (r *reader) upTo(name string, most uint64) uint64 {
	n := r.number(name, false)
	if n > most {
		r.fail(name, fmt.Errorf("%d is above %d", n, most))
		return 0
	}
	return n
}

func (r *reader) bool(name string) bool {
	switch v := r.it[name].(type) {
	case nil:
	case *types.AttributeValueMemberBOOL:
		return v.Value
	default:
		r.fail(name, errors.New("it is not a boolean"))
	}
	return false
}

func (r *reader) list(name string) []string {
	switch v := r.it[name].(type) {
	case nil:
	case *types.AttributeValueMemberL:
		var all []string
		for _, e := range v.Value {
			s, ok := e.(*types.AttributeValueMemberS)
			if !ok {
				r.fail(name, errors.New("it is not a list of texts"))
				return nil
			}
			all = append(all, s.Value)
		}
		return all
	default:
		r.fail(name, errors.New("it is not a list"))
	}
	return nil
}

func (r *reader) set(name string) []string {
	switch v := r.it[name].(type) {
	case nil:
	case *types.AttributeValueMemberSS:
		return slices.Clone(v.Value)
	default:
		r.fail(name, errors.New("it is not a set of texts"))
	}
	return nil
}

// done returns the first error, with the row in which it occurred.
func (r *reader) done() error {
	if r.err == nil {
		return nil
	}
	name := func(attr string) string {
		if s, ok := r.it[attr].(*types.AttributeValueMemberS); ok {
			return fmt.Sprintf("%.120q", s.Value)
		}
		return "without a name"
	}
	return fmt.Errorf("dynamostore: row %s of application %s cannot be read: %w", name(attrRow), name(attrApp), r.err)
}
