// Package dump reads and writes the file format of an application's progress, for "weir group
// export" and "weir group import".
//
// The file consists of lines of JSON. The first line contains the format and the number of leases.
// Each further line is a lease:
//
//	{"weir":"progress","version":1,"app":"billing","leases":2,"paused":["clicks"]}
//	{"stream":"orders","shard":"shardId-000000000000","range":["0","17…"],"epoch":7,"position":"4959…","born":1767323045000}
//	{"stream":"orders","shard":"shardId-000000000002","parents":["shardId-000000000000"],"range":["0","8…"],"epoch":1,"position":"oldest"}
//
// Positions have the text form of package shard: oldest, latest, end, a time, a sequence number for
// the position after that record, or a sequence number with its count of finished sub-records
// ("4959…+3"). The file contains no owners and no recorded deaths, so imported leases start without
// them.
package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Version is the only version of the format.
const Version = 1

const (
	kind      = "progress"
	maxLine   = 64 << 10
	maxLeases = 1_000_000
	maxEpoch  = 1 << 62 // leaves room for an epoch to increase
)

// File is the content of a dump.
type File struct {
	App    string
	Paused []string      // sorted; "" stands for the whole application
	Leases []lease.Lease // sorted by key, without sessions
}

// Of returns the part of a view that belongs in a dump.
func Of(app string, v lease.View) File {
	f := File{App: app, Paused: slices.Clone(v.Paused), Leases: slices.Clone(v.Leases)}
	for i := range f.Leases {
		l := &f.Leases[i]
		l.Owner, l.Heir, l.Revoked, l.Last, l.Shunned, l.Deaths, l.Numbers = "", "", "", "", "", "", ""
	}
	slices.SortFunc(f.Leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	return f
}

type header struct {
	Weir    string   `json:"weir"`
	Version int      `json:"version"`
	App     string   `json:"app"`
	Leases  int      `json:"leases"`
	Paused  []string `json:"paused,omitempty"`
}

type line struct {
	Stream   string         `json:"stream"`
	Shard    string         `json:"shard"`
	Parents  []string       `json:"parents,omitempty"`
	Range    [2]string      `json:"range"`
	Epoch    uint64         `json:"epoch"`
	Position shard.Position `json:"position"`
	Load     lease.Load     `json:"load,omitempty"`
	Born     int64          `json:"born,omitempty"`
}

// Write writes f. Its leases must be sorted, as they are in results of [Of].
func Write(w io.Writer, f File) error {
	buf := bufio.NewWriter(w)
	out := json.NewEncoder(buf)
	out.SetEscapeHTML(false)
	if err := out.Encode(header{kind, Version, f.App, len(f.Leases), f.Paused}); err != nil {
		return err
	}
	for _, l := range f.Leases {
		err := out.Encode(line{l.Stream, l.Shard, l.Parents, [2]string{l.Range.Start.String(), l.Range.End.String()},
			l.Epoch, l.Position, l.Load, l.Born})
		if err != nil {
			return err
		}
	}
	return buf.Flush()
}

// Read reads and checks a whole dump. Its error names the invalid line and the problem. No part of
// the dump may be used after an error.
func Read(r io.Reader) (File, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	number := 0
	next := func() ([]byte, error) {
		number++
		if in.Scan() {
			return in.Bytes(), nil
		}
		if errors.Is(in.Err(), bufio.ErrTooLong) {
			return nil, fmt.Errorf("line %d is longer than %d KiB", number, maxLine>>10)
		}
		if in.Err() != nil {
			return nil, fmt.Errorf("line %d cannot be read: %w", number, in.Err())
		}
		return nil, io.EOF
	}

	text, err := next()
	if err != nil && !errors.Is(err, io.EOF) {
		return File{}, err
	}
	head, err := parseHeader(text)
	if err != nil {
		return File{}, err
	}
	f := File{App: head.App, Paused: head.Paused}
	seen := map[lease.Key]int{}
	for range head.Leases {
		text, err := next()
		if errors.Is(err, io.EOF) {
			return File{}, fmt.Errorf("it ends after %d of its %d leases: it was cut off", len(f.Leases), head.Leases)
		}
		if err != nil {
			return File{}, err
		}
		l, err := parseLease(text)
		if err != nil {
			return File{}, fmt.Errorf("line %d: %w", number, err)
		}
		if first := seen[l.Key]; first > 0 {
			return File{}, fmt.Errorf("line %d: the lease %s is there already, in line %d", number, l.Key, first)
		}
		seen[l.Key] = number
		f.Leases = append(f.Leases, l)
	}
	for {
		text, err := next()
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(f.Leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
			return f, nil
		case err != nil:
			return File{}, err
		case len(bytes.TrimSpace(text)) > 0:
			return File{}, fmt.Errorf("line %d: there is more than the %d leases that the first line announces", number, head.Leases)
		}
	}
}

func parseHeader(text []byte) (header, error) {
	var h header
	// Accept unknown fields here. A dump of a later version may have them. The error for such a
	// dump must be about its version, and not say that the file is of another kind.
	if err := json.Unmarshal(text, &h); err != nil || h.Weir != kind {
		return h, errors.New(`it is not what "weir group export" writes: the first line is not {"weir":"progress",…}`)
	}
	switch {
	case h.Version != Version:
		return h, fmt.Errorf("it is of version %d, and this weir reads version %d: use a newer weir", h.Version, Version)
	case h.Leases < 0 || h.Leases > maxLeases:
		return h, fmt.Errorf("line 1: it announces %d leases: want 0 to %d", h.Leases, maxLeases)
	case len(h.Paused) > lease.MaxPaused:
		return h, fmt.Errorf("line 1: %d streams are paused, at most %d can be", len(h.Paused), lease.MaxPaused)
	}
	for _, stream := range h.Paused {
		if err := (lease.Action{Kind: lease.Pause, Stream: stream}).Check(); err != nil {
			return h, fmt.Errorf("line 1: %w", err)
		}
		if strings.ContainsFunc(stream, unicode.IsControl) {
			return h, fmt.Errorf("line 1: a control character is in the name of a stream that is paused: %q", stream)
		}
	}
	return h, lease.CheckApp(h.App)
}

func parseLease(text []byte) (lease.Lease, error) {
	var in line
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&in); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return lease.Lease{}, fmt.Errorf("it is not a lease: its field %q has a value of the wrong kind or size: %s", kind.Field, kind.Value)
		}
		return lease.Lease{}, fmt.Errorf("it is not a lease: %w", err)
	}
	if strict.InputOffset() != int64(len(bytes.TrimRight(text, " \t\r"))) {
		return lease.Lease{}, errors.New("there is something after the lease")
	}
	if in.Position.IsZero() {
		return lease.Lease{}, errors.New("it has no position")
	}
	if in.Epoch == 0 {
		return lease.Lease{}, errors.New("its epoch is missing or 0: epochs begin with 1")
	}
	if in.Epoch > maxEpoch {
		return lease.Lease{}, fmt.Errorf("its epoch %d is above 2^62, so it could not change hands any more", in.Epoch)
	}
	// Kinesis' names contain no control characters. In a table, these would control the terminal.
	if strings.ContainsFunc(in.Stream+in.Shard+strings.Join(in.Parents, ""), unicode.IsControl) {
		return lease.Lease{}, fmt.Errorf("a control character is in the name of a stream or shard: %q, %q, %q", in.Stream, in.Shard, in.Parents)
	}
	hashes, err := shard.ParseHashRange(in.Range[0], in.Range[1])
	if err != nil {
		return lease.Lease{}, err
	}
	l := lease.Lease{
		Key: lease.Key{Stream: in.Stream, Shard: in.Shard}, Parents: in.Parents, Range: hashes,
		Epoch: in.Epoch, Position: in.Position, Load: in.Load, Born: in.Born,
	}
	return l, lease.Action{Kind: lease.Create, Lease: l}.Check()
}
