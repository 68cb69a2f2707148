package model

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// PutEntry is one record of a call of PutRecords.
type PutEntry struct {
	Data          []byte
	Key, Explicit string
}

// readPuts parses a call of PutRecords.
func readPuts(body []byte, cbor bool) (c Call, err error) {
	c.Op, c.cbor = "PutRecords", cbor
	var in struct {
		StreamName, StreamARN string
		Records               []struct{ Data, PartitionKey, ExplicitHashKey string }
	}
	if cbor {
		v, rest, ok := valueCBOR(body)
		m, isMap := v.(map[string]any)
		if !ok || !isMap || len(rest) > 0 {
			return c, errCBOR
		}
		in.StreamName, _ = m["StreamName"].(string)
		in.StreamARN, _ = m["StreamARN"].(string)
		all, _ := m["Records"].([]any)
		for _, one := range all {
			fields, _ := one.(map[string]any)
			data, _ := fields["Data"].([]byte)
			key, _ := fields["PartitionKey"].(string)
			explicit, _ := fields["ExplicitHashKey"].(string)
			c.Puts = append(c.Puts, PutEntry{data, key, explicit})
		}
	} else {
		if err := json.Unmarshal(body, &in); err != nil {
			return c, err
		}
		for _, r := range in.Records {
			data, err := base64.StdEncoding.DecodeString(r.Data)
			if err != nil {
				return c, fmt.Errorf("model: the data of a record: %w", err)
			}
			c.Puts = append(c.Puts, PutEntry{data, r.PartitionKey, r.ExplicitHashKey})
		}
	}
	if c.Stream = in.StreamName; c.Stream == "" {
		c.Stream = streamOf(in.StreamARN)
	}
	return c, nil
}

// valueCBOR reads a value: a map, an array, a text, bytes or a number. The bytes are part of b.
func valueCBOR(b []byte) (v any, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	major, n := b[0]>>5, uint64(b[0]&31)
	b = b[1:]
	if n >= 24 {
		size := 1 << (n - 24)
		if n > 27 || len(b) < size {
			return nil, nil, false
		}
		n = 0
		for _, x := range b[:size] {
			n = n<<8 | uint64(x)
		}
		b = b[size:]
	}
	switch major {
	case 0:
		return n, b, true
	case 2, 3:
		if uint64(len(b)) < n {
			return nil, nil, false
		}
		if major == 3 {
			return string(b[:n]), b[n:], true
		}
		return b[:n:n], b[n:], true
	case 4:
		var all []any
		for range n {
			if v, b, ok = valueCBOR(b); !ok {
				return nil, nil, false
			}
			all = append(all, v)
		}
		return all, b, true
	case 5:
		all := map[string]any{}
		for range n {
			name, more, ok := valueCBOR(b)
			text, isText := name.(string)
			if !ok || !isText {
				return nil, nil, false
			}
			if all[text], b, ok = valueCBOR(more); !ok {
				return nil, nil, false
			}
		}
		return all, b, true
	}
	return nil, nil, false
}

// putResult is the result of an entry.
type putResult struct {
	ErrorCode      string `json:",omitempty"`
	ErrorMessage   string `json:",omitempty"`
	SequenceNumber string `json:",omitempty"`
	ShardId        string `json:",omitempty"`
}

// putAnswer returns an answer to PutRecords, in the format of the call.
func (c Call) putAnswer(results []putResult) Answer {
	failed := 0
	for _, r := range results {
		if r.ErrorCode != "" {
			failed++
		}
	}
	if !c.cbor {
		return answer(struct {
			FailedRecordCount int
			Records           []putResult
		}{failed, results})
	}
	b := head(nil, 5, 2)
	b = head(text(b, "FailedRecordCount"), 0, uint64(failed))
	b = head(text(b, "Records"), 4, uint64(len(results)))
	for _, r := range results {
		fields := [][2]string{
			{"ErrorCode", r.ErrorCode}, {"ErrorMessage", r.ErrorMessage},
			{"SequenceNumber", r.SequenceNumber}, {"ShardId", r.ShardId},
		}
		fields = slices.DeleteFunc(fields, func(f [2]string) bool { return f[1] == "" })
		b = head(b, 5, uint64(len(fields)))
		for _, f := range fields {
			b = text(text(b, f[0]), f[1])
		}
	}
	return Answer{Status: 200, Body: b, CBOR: true}
}

// PutWhim is how one entry of PutRecords ends.
type PutWhim struct {
	Code  string // it is refused with this code
	Kept  bool   // it is stored in spite of Code
	Blank bool   // it has neither a code nor a sequence number, and is not stored
}

// Stored is a record of the stream that PutRecords stored, with the producers' records that it
// contains.
type Stored struct {
	Shard  *Shard
	Record Record
	Users  []User
}

// User is a record of a producer. It is a record of the stream by itself, or a part of an
// aggregate.
type User struct {
	Key, Explicit string
	Data          []byte
	Owned         bool // its key belongs to the shard
}

// PutRecords carries out a call. whim decides about each entry. The answer lacks the last results;
// cut is their number.
func (s *Service) PutRecords(
	c Call, whim func(i int) PutWhim, cut int, now time.Time,
) (Answer, []Stored) {
	st := s.streams[c.Stream]
	if st == nil {
		return Fail(400, "ResourceNotFoundException", "no stream "+c.Stream), nil
	}
	results := []putResult{}
	var all []Stored
	for i, e := range c.Puts {
		how := whim(i)
		var r putResult
		if how.Code == "" && !how.Blank || how.Kept {
			one := s.store(st, e, now)
			all = append(all, one)
			r = putResult{SequenceNumber: Number(one.Record.Seq), ShardId: one.Shard.ID}
		}
		if how.Code != "" {
			r = putResult{ErrorCode: how.Code, ErrorMessage: "sim"}
		}
		results = append(results, r)
	}
	return c.putAnswer(results[:max(0, len(results)-cut)]), all
}

// store appends a record to the shard of its hash key.
func (s *Service) store(st *Stream, e PutEntry, now time.Time) Stored {
	h := HashKey(e.Key, e.Explicit)
	for _, sh := range st.Open() {
		if sh.Lo > h || h > sh.Hi {
			continue
		}
		s.seq += 1 + h%3
		one := Stored{Shard: sh, Record: Record{Seq: s.seq, Key: e.Key, Data: e.Data, Arrival: now}}
		sh.Records = append(sh.Records, one.Record)
		users, packed := unpack(e.Data)
		if !packed {
			users = []User{{Key: e.Key, Explicit: e.Explicit, Data: e.Data}}
		}
		for _, u := range users {
			h := HashKey(u.Key, u.Explicit)
			u.Owned = sh.Lo <= h && h <= sh.Hi
			one.Users = append(one.Users, u)
		}
		return one
	}
	panic("model: the open shards do not cover all hash keys")
}

// HashKey returns the upper 64 bits of a record's hash key: of the explicit one, or of the MD5 of
// the partition key.
func HashKey(key, explicit string) uint64 {
	if n, ok := new(big.Int).SetString(explicit, 10); ok {
		return n.Rsh(n, 64).Uint64()
	}
	sum := md5.Sum([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

// unpack returns the records in an aggregate of the KPL's format. packed is false for other data.
func unpack(data []byte) (users []User, packed bool) {
	if !bytes.HasPrefix(data, []byte{0xf3, 0x89, 0x9a, 0xc2}) || len(data) < 4+md5.Size {
		return nil, false
	}
	message := data[4 : len(data)-md5.Size]
	if sum := md5.Sum(message); !bytes.Equal(sum[:], data[len(data)-md5.Size:]) {
		return nil, false
	}
	var keys, explicit []string
	var records [][]byte
	sound := fields(message, func(field uint64, _ uint64, text []byte) {
		switch field {
		case 1:
			keys = append(keys, string(text))
		case 2:
			explicit = append(explicit, string(text))
		case 3:
			records = append(records, text)
		}
	})
	if !sound {
		return nil, false
	}
	for _, r := range records {
		var u User
		sound = sound && fields(r, func(field uint64, n uint64, text []byte) {
			switch {
			case field == 1 && n < uint64(len(keys)):
				u.Key = keys[n]
			case field == 2 && n < uint64(len(explicit)):
				u.Explicit = explicit[n]
			case field == 3:
				u.Data = text
			}
		})
		users = append(users, u)
	}
	return users, sound
}

// fields calls the function each for every field of a protobuf message. A field is a number or a
// text.
func fields(b []byte, each func(field, n uint64, text []byte)) (sound bool) {
	for len(b) > 0 {
		tag, used := binary.Uvarint(b)
		if used <= 0 {
			return false
		}
		b = b[used:]
		n, used := binary.Uvarint(b)
		if used <= 0 {
			return false
		}
		b = b[used:]
		switch tag & 7 {
		case 0:
			each(tag>>3, n, nil)
		case 2:
			if n > uint64(len(b)) {
				return false
			}
			each(tag>>3, 0, b[:n])
			b = b[n:]
		default:
			return false
		}
	}
	return true
}
