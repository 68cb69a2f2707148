package s3sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// chain is the chain of links of one shard.
type chain struct {
	bucket         bucket.Bucket
	stream, shard  string
	links, objects string // prefixes of the keys
}

// link describes which object contains the records after a position.
type link struct {
	Version int    `json:"weir_chain"` // always 1
	Stream  string `json:"stream"`
	Shard   string `json:"shard"`
	// At is the position before the object. It is zero in the first link of a chain.
	At weir.Position `json:"at"`
	// From is the position at which reading began, in the first link. In other links it is zero.
	From weir.Position `json:"from"`
	// To is the position after the last record of the object. It is after a whole Kinesis record,
	// or at the end of the shard.
	To weir.Position `json:"to"`
	// Object is the key of the object. It is "" if the shard ended without further records.
	Object string `json:"object"`
	// The following fields are information for users, from the writer of the link.
	Records int       `json:"records"`
	Written time.Time `json:"written"`
}

const (
	version  = 1
	mostLink = 64 << 10
)

// key returns the key of the link that begins at a position.
func (c *chain) key(at weir.Position) string { return c.links + linkName(at) }

// linkName returns the name of the link that begins at a position. The names sort in reverse order:
// the newest link comes first.
func linkName(at weir.Position) string {
	if at.IsZero() {
		return "start"
	}
	seq := at.SequenceNumber()
	return strings.Map(func(r rune) rune { return '9' - (r - '0') }, fmt.Sprintf("%03d%s", len(seq), seq))
}

// read returns the link that begins at a position. It returns nil if there is none.
func (c *chain) read(ctx context.Context, at weir.Position) (*link, error) {
	return c.load(ctx, c.key(at))
}

func (c *chain) load(ctx context.Context, key string) (*link, error) {
	text, _, err := c.bucket.Get(ctx, key, mostLink)
	if err != nil || text == nil {
		return nil, err
	}
	l, err := c.parse(key, text)
	if err != nil {
		return nil, fmt.Errorf("s3sink: the link %s is damaged: %w", key, err)
	}
	return l, nil
}

// parse decodes a link, and checks that it belongs to its key.
func (c *chain) parse(key string, text []byte) (*link, error) {
	var l link
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	switch {
	case l.Version > version:
		return nil, fmt.Errorf("it has form %d; this weir reads up to %d", l.Version, version)
	case l.Version != version:
		return nil, errors.New(`it has no "weir_chain"`)
	case l.Stream != c.stream || l.Shard != c.shard:
		return nil, fmt.Errorf("it is of shard %.128q of stream %.128q", l.Shard, l.Stream)
	case !l.At.IsZero() && !whole(l.At), key != c.key(l.At):
		return nil, fmt.Errorf("it begins at %.200q", l.At)
	case l.At.IsZero() == l.From.IsZero(), l.From.IsEnd():
		return nil, fmt.Errorf("reading began at %.200q", l.From)
	case !whole(l.To) && !l.To.IsEnd(), l.To.Compare(l.At) <= 0:
		return nil, fmt.Errorf("it ends at %.200q", l.To)
	case l.Object == "" && !l.To.IsEnd(), l.Object != "" && !strings.HasPrefix(l.Object, c.objects):
		return nil, fmt.Errorf("its object is %.300q", l.Object)
	}
	return &l, nil
}

// claim writes a link. It returns the link that exists after that: l, or a link of another writer
// that was faster.
func (c *chain) claim(ctx context.Context, l link) (*link, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	key := c.key(l.At)
	_, made, err := c.bucket.Put(ctx, key, text, nil, bucket.Condition{New: true})
	if err != nil {
		return nil, err
	}
	if made {
		return &l, nil
	}
	there, err := c.load(ctx, key)
	if err == nil && there == nil {
		err = fmt.Errorf("s3sink: the link %s was found first, and then was not: was it removed?", key)
	}
	return there, err
}

// standing describes the end of a chain.
type standing struct {
	link    *link // the newest link; nil if the chain is empty
	written bool  // the object of the newest link exists
}

// end finds the end of the chain.
func (c *chain) end(ctx context.Context) (standing, error) {
	keys, err := c.bucket.List(ctx, c.links, "", 1)
	if err != nil || len(keys) == 0 {
		return standing{}, err
	}
	l, err := c.load(ctx, keys[0])
	if err == nil && l == nil { // a missing link must not count as an empty chain
		err = fmt.Errorf("s3sink: the link %s was listed and is not there", keys[0])
	}
	if err != nil {
		return standing{}, err
	}
	written, err := c.written(ctx, l)
	return standing{l, written}, err
}

// written reports whether the object of a link exists.
func (c *chain) written(ctx context.Context, l *link) (bool, error) {
	if l.Object == "" {
		return true, nil
	}
	return c.bucket.Exists(ctx, l.Object)
}

// reaches reports whether an object that ends at to contains a record. record is the position of
// that record.
func reaches(to, record weir.Position) bool { return record.Compare(to) <= 0 }

// continues reports whether a term that reads from a position reads all records after the end of a
// chain.
func continues(from, end weir.Position) bool {
	switch {
	case end.IsZero(), end.IsEnd():
		return true
	case from.Kind() != shard.Sequence: // times and sequence numbers cannot be compared
		return false
	}
	return from.Compare(end) <= 0
}
