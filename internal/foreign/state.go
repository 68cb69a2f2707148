package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Client is another client of Kinesis.
type Client uint8

// These are the clients whose checkpoints can be moved.
const (
	Harlow   Client = iota + 1 // harlow/kinesis-consumer
	VMware                     // vmware-go-kcl 1 and 2
	Kinsumer                   // kinsumer
	Lifion                     // lifion-kinesis 1
)

// String returns the name of the client.
func (c Client) String() string {
	return [...]string{
		"?", Harlow: "harlow/kinesis-consumer", VMware: "vmware-go-kcl", Kinsumer: "kinsumer",
		Lifion: "lifion-kinesis",
	}[c]
}

// Number is a DynamoDB number. The other types of values are string, bool, nil,
// map[string]any and []any.
type Number string

// Item is an item of a DynamoDB table.
type Item map[string]any

// Row is the progress of one shard.
type Row struct {
	Shard string
	// At is where reading resumes. It is zero if the row has no position, and [shard.Latest] if the
	// row names the tip.
	At  shard.Position
	Raw string // the stored value, for people
	// Was contains the attributes that must be unchanged when the row is written. A nil value means
	// that the attribute is absent.
	Was Item
}

// Sign is a value that a running worker of the client changes.
type Sign struct {
	Key, Worker string
	Value       string
	Updated     time.Time     // by the worker's clock; zero if the row has no time
	Every       time.Duration // a running worker changes the value at least this often
}

// State is the content of a client's tables about one application and stream.
type State struct {
	Rows  []Row // sorted by shard
	Signs []Sign
	// Last is the latest time in the rows, by the clocks of the workers. It is zero if the rows
	// have no time.
	Last time.Time
	// Notes are sentences that an operator should read.
	Notes []string
}

// add adds a row.
func (s *State) add(r Row) { s.Rows = append(s.Rows, r) }

// sign adds a sign and moves Last.
func (s *State) sign(n Sign) {
	s.Signs = append(s.Signs, n)
	s.see(n.Updated)
}

// see moves Last forward.
func (s *State) see(at time.Time) {
	if at.After(s.Last) {
		s.Last = at
	}
}

func (s *State) sort() {
	slices.SortFunc(s.Rows, func(a, b Row) int { return strings.Compare(a.Shard, b.Shard) })
	slices.SortFunc(s.Signs, func(a, b Sign) int { return strings.Compare(a.Key, b.Key) })
}

// MaxRows is the maximum number of rows of one application.
const MaxRows = 200_000

// RowError reports a row that differs from the rows that the client writes.
type RowError struct{ Row, Problem string }

func (e *RowError) Error() string {
	return fmt.Sprintf(
		"row %.300q: %s; correct it, or delete it if no application needs it, and run the command "+
			"again",
		e.Row, e.Problem,
	)
}

// checkShard returns an error if id is not the ID of a shard.
func checkShard(id string) error {
	if id == "" || len(id) > lease.MaxNameBytes || !printable(id) || strings.ContainsAny(id, ":/ ") {
		return &RowError{id, "its key is not the ID of a shard: check the name of the table"}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// after returns the position after a sequence number. "" is the zero position. A database may
// return a number with zeros after a decimal point.
func after(row, number string) (shard.Position, error) {
	if whole, zeros, found := strings.Cut(number, "."); found && strings.Trim(zeros, "0") == "" {
		number = whole
	}
	if number == "" {
		return shard.Position{}, nil
	}
	p, err := shard.After(number)
	if err != nil {
		return p, &RowError{row, fmt.Sprintf("%.140q is not a sequence number", number)}
	}
	return p, nil
}

// text returns an attribute that is a string, or "" if it is absent or NULL.
func (it Item) text(row, name string) (string, error) {
	switch v := it[name].(type) {
	case nil:
		return "", nil
	case string:
		if len(v) > 2048 || !printable(v) {
			return "", &RowError{row, name + " is too long, or cannot be printed"}
		}
		return v, nil
	}
	return "", &RowError{row, name + " is not a string"}
}

// number returns an attribute that is a whole number of at least 0, or 0 if it is absent or NULL.
func (it Item) number(row, name string) (int64, error) {
	switch v := it[name].(type) {
	case nil:
		return 0, nil
	case Number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || n < 0 {
			return 0, &RowError{row, fmt.Sprintf("%s is %.60q: want a whole number", name, v)}
		}
		return n, nil
	}
	return 0, &RowError{row, name + " is not a number"}
}

// flag returns an attribute that is a Boolean, or false if it is absent or NULL.
func (it Item) flag(row, name string) (bool, error) {
	switch v := it[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	}
	return false, &RowError{row, name + " is not a Boolean"}
}

// child returns an attribute that is a map, or nil if it is absent or NULL.
func (it Item) child(row, name string) (Item, error) {
	switch v := it[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	case Item:
		return v, nil
	}
	return nil, &RowError{row, name + " is not a map"}
}

// clock returns an attribute that is a time in RFC 3339, or the zero time if it is absent.
func (it Item) clock(row, name string) (time.Time, error) {
	s, err := it.text(row, name)
	if err != nil || s == "" {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return at, &RowError{row, fmt.Sprintf("%s is %.60q: want a time in RFC 3339", name, s)}
	}
	return at, nil
}

// was returns the values of some attributes, with nil for an attribute that is absent.
func (it Item) was(names ...string) Item {
	w := Item{}
	for _, n := range names {
		w[n] = it[n]
		if v, there := it[n]; there && v == nil {
			w[n] = Null{}
		}
	}
	return w
}

// Null is a NULL of DynamoDB in [Row.Was] and in an [Update], where nil means an absent attribute.
type Null struct{}
