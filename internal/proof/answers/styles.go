// Package answers encodes answers to GetRecords and events of subscriptions in many valid styles.
// It decodes them with slow reference readers.
package answers

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/wire/codec"
)

// CBOR is a style of encoding an answer.
type CBOR struct {
	Open       bool // maps and lists have indefinite lengths
	Chunks     bool // strings are in chunks
	Order      []string
	Extra      bool // add unknown fields
	TextData   bool // data is base64 text
	Untagged   bool // times have no tag
	Float      bool // times are floating-point numbers
	Seconds    bool // times are in seconds
	NullKey    bool // records without a key have a null key; otherwise the key is omitted
	Encryption bool // include encryption type NONE; otherwise only KMS is included
	Last       bool // records are the last field of the answer
}

// UsualOrder is the usual order of a record's fields.
var UsualOrder = []string{"SequenceNumber", "ApproximateArrivalTimestamp", "Data", "PartitionKey", "EncryptionType"}

// Major types of RFC 8949, at their position in the first byte of an item, and simple values.
const (
	cborUint    = 0 << 5
	cborBytes   = 2 << 5
	cborText    = 3 << 5
	cborArray   = 4 << 5
	cborMap     = 5 << 5
	cborTag     = 6 << 5
	cborOther   = 7 << 5
	cborOpen    = 31
	cborNull    = cborOther | 22
	cborFloat16 = cborOther | 25
	cborFloat64 = cborOther | 27
	cborBreak   = cborOther | 31
)

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

func (st CBOR) str(b []byte, major byte, s string) []byte {
	if !st.Chunks {
		return append(appendHead(b, major, uint64(len(s))), s...)
	}
	b = append(b, major|cborOpen)
	for len(s) > 0 {
		n := min(len(s), 1+len(s)/3)
		b = append(appendHead(b, major, uint64(n)), s[:n]...)
		s = s[n:]
	}
	return append(b, cborBreak)
}

func (st CBOR) key(b []byte, s string) []byte {
	return append(appendHead(b, cborText, uint64(len(s))), s...)
}

func (st CBOR) begin(b []byte, major byte, n int) []byte {
	if st.Open {
		return append(b, major|cborOpen)
	}
	return appendHead(b, major, uint64(n))
}

func (st CBOR) end(b []byte) []byte {
	if st.Open {
		return append(b, cborBreak)
	}
	return b
}

func (st CBOR) time(b []byte, ms int64) []byte {
	if !st.Untagged {
		b = append(b, cborTag|1)
	}
	v := float64(ms)
	if st.Seconds {
		v /= 1000
	}
	if st.Float || st.Seconds {
		return binary.BigEndian.AppendUint64(append(b, cborFloat64), math.Float64bits(v))
	}
	return appendHead(b, cborUint, uint64(ms))
}

// Encode encodes p as an answer in CBOR.
func (st CBOR) Encode(p *codec.Page) []byte {
	order := st.Order
	if order == nil {
		order = UsualOrder
	}
	var members []func([]byte) []byte
	records := func(b []byte) []byte {
		b = st.begin(st.key(b, "Records"), cborArray, len(p.Records))
		for i := range p.Records {
			b = st.record(b, &p.Records[i], order)
		}
		return st.end(b)
	}
	if !st.Last {
		members = append(members, records)
	}
	if p.Behind >= 0 {
		members = append(members, func(b []byte) []byte {
			return appendHead(st.key(b, "MillisBehindLatest"), cborUint, uint64(p.Behind.Milliseconds()))
		})
	}
	if st.Extra {
		members = append(members, func(b []byte) []byte {
			// This is a map that contains a list, a float, a tagged string in chunks, and a break.
			b = append(st.key(b, "Unheard"), cborMap|cborOpen)
			b = append(st.key(b, "of"), cborArray|2, cborFloat16, 0x3c, 0, cborTag|3, cborText|cborOpen, cborText|1, 'x', cborBreak)
			b = append(b, cborUint|5, cborOther|24, 200)
			return append(b, cborBreak)
		})
	}
	members = append(members, func(b []byte) []byte {
		b = st.key(b, "NextShardIterator")
		if p.Next == "" {
			return append(b, cborNull)
		}
		return st.str(b, cborText, p.Next)
	})
	if p.Children != nil {
		members = append(members, func(b []byte) []byte {
			b = st.begin(st.key(b, "ChildShards"), cborArray, len(p.Children))
			for _, c := range p.Children {
				b = st.begin(b, cborMap, 3)
				b = st.str(st.key(b, "ShardId"), cborText, *c.ShardId)
				b = st.begin(st.key(b, "ParentShards"), cborArray, len(c.ParentShards))
				for _, id := range c.ParentShards {
					b = st.str(b, cborText, id)
				}
				b = st.end(b)
				b = st.begin(st.key(b, "HashKeyRange"), cborMap, 2)
				b = st.str(st.key(b, "StartingHashKey"), cborText, *c.HashKeyRange.StartingHashKey)
				b = st.str(st.key(b, "EndingHashKey"), cborText, *c.HashKeyRange.EndingHashKey)
				b = st.end(st.end(b))
			}
			return st.end(b)
		})
	}
	if st.Last {
		members = append(members, records)
	}
	b := st.begin(nil, cborMap, len(members))
	for _, m := range members {
		b = m(b)
	}
	return st.end(b)
}

func (st CBOR) record(b []byte, r *codec.Record, order []string) []byte {
	var members []func([]byte) []byte
	for _, name := range order {
		switch name {
		case "Data":
			members = append(members, func(b []byte) []byte {
				if b = st.key(b, name); st.TextData {
					return st.str(b, cborText, base64.StdEncoding.EncodeToString(r.Data))
				}
				return st.str(b, cborBytes, string(r.Data))
			})
		case "PartitionKey":
			if r.Key == "" && !st.NullKey {
				continue
			}
			members = append(members, func(b []byte) []byte {
				if b = st.key(b, name); r.Key == "" {
					return append(b, cborNull)
				}
				return st.str(b, cborText, r.Key)
			})
		case "SequenceNumber":
			members = append(members, func(b []byte) []byte { return st.str(st.key(b, name), cborText, r.SequenceNumber) })
		case "ApproximateArrivalTimestamp":
			members = append(members, func(b []byte) []byte { return st.time(st.key(b, name), r.Arrival) })
		case "EncryptionType":
			if !r.Encrypted && !st.Encryption {
				continue
			}
			members = append(members, func(b []byte) []byte {
				if b = st.key(b, name); r.Encrypted {
					return st.str(b, cborText, "KMS")
				}
				return st.str(b, cborText, "NONE")
			})
		}
	}
	if st.Extra {
		members = append(members, func(b []byte) []byte { return append(st.key(b, "Novelty"), cborArray|1, cborNull) })
	}
	b = st.begin(b, cborMap, len(members))
	for _, m := range members {
		b = m(b)
	}
	return st.end(b)
}

// JSON is a style of encoding an answer.
type JSON struct {
	Order  []string
	Time   string // "" means seconds with three decimals, "e" an exponent, and "int" whole seconds
	Blanks bool
	Extra  bool
	Slash  bool // escape slashes
	Escape bool // escape every character of strings, except in data
}

func (st JSON) text(s string) string {
	if !st.Escape {
		return strconv.Quote(s) // for the tests' strings, this equals JSON
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteByte('"')
	return b.String()
}

// Encode encodes p as an answer in JSON.
func (st JSON) Encode(p *codec.Page) []byte {
	order := st.Order
	if order == nil {
		order = UsualOrder
	}
	var records []string
	for i := range p.Records {
		records = append(records, st.record(&p.Records[i], order))
	}
	members := []string{`"Records":[` + strings.Join(records, ",") + `]`}
	if p.Behind >= 0 {
		members = append(members, fmt.Sprintf(`"MillisBehindLatest":%d`, p.Behind.Milliseconds()))
	}
	if st.Extra {
		members = append(members, `"Unheard":{"of":[1,-2.5e+3,"x\"",{"Records":[]},true,false,null,[]]}`)
	}
	if p.Next != "" {
		members = append(members, `"NextShardIterator":`+st.text(p.Next))
	} else {
		members = append(members, `"NextShardIterator":null`)
	}
	if p.Children != nil {
		var kids []string
		for _, c := range p.Children {
			var parents []string
			for _, id := range c.ParentShards {
				parents = append(parents, st.text(id))
			}
			kids = append(kids, fmt.Sprintf(`{"ShardId":%s,"ParentShards":[%s],"HashKeyRange":{"EndingHashKey":%s,"StartingHashKey":%s}}`,
				st.text(*c.ShardId), strings.Join(parents, ","), st.text(*c.HashKeyRange.EndingHashKey), st.text(*c.HashKeyRange.StartingHashKey)))
		}
		members = append(members, `"ChildShards":[`+strings.Join(kids, ",")+`]`)
	}
	s := "{" + strings.Join(members, ",") + "}"
	if st.Blanks {
		s = strings.NewReplacer("{", " {\n", "}", "\t}", ",", " , ", `":`, "\" :\r\n", "[", "[ ", "]", " ]").Replace(s) + "\n"
	}
	return []byte(s)
}

func (st JSON) record(r *codec.Record, order []string) string {
	var members []string
	for _, name := range order {
		value := ""
		switch name {
		case "Data":
			if value = base64.StdEncoding.EncodeToString(r.Data); st.Slash {
				value = strings.ReplaceAll(value, "/", `\/`)
			}
			value = `"` + value + `"`
		case "PartitionKey":
			if r.Key == "" {
				continue
			}
			value = st.text(r.Key)
		case "SequenceNumber":
			value = st.text(r.SequenceNumber)
		case "ApproximateArrivalTimestamp":
			switch seconds := float64(r.Arrival) / 1000; st.Time {
			case "e":
				value = strconv.FormatFloat(seconds, 'E', -1, 64)
			case "int":
				value = strconv.FormatInt(r.Arrival/1000, 10)
			default:
				value = strconv.FormatFloat(seconds, 'f', -1, 64)
			}
		case "EncryptionType":
			if value = `"NONE"`; r.Encrypted {
				value = `"KMS"`
			}
		}
		members = append(members, `"`+name+`":`+value)
	}
	if st.Extra {
		members = append(members, `"Novelty":[null]`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Sample returns a page of n records with data of size bytes. The same arguments give the same
// page.
func Sample(n, size int) *codec.Page {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	p := &codec.Page{Behind: 0, Next: strings.Repeat("AAAAAAAAAAE", 20) + "=="}
	arrival := int64(1_718_549_822_123)
	for i := range n {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(rng.Uint32())
		}
		arrival += int64(rng.IntN(5))
		p.Records = append(p.Records, codec.Record{
			Data:           data,
			Key:            fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", rng.Uint32(), i&0xffff, i&0xffff, i&0xffff, rng.Uint32()),
			SequenceNumber: fmt.Sprintf("4966%052d", i),
			Arrival:        arrival,
		})
		p.Bytes += size + 36
	}
	return p
}

// Decode decodes body into p. It fails the test if there is an error.
func Decode(tb testing.TB, f codec.Format, body []byte, p *codec.Page) {
	tb.Helper()
	if err := codec.Decode(f, body, p); err != nil {
		tb.Fatal(err)
	}
}
