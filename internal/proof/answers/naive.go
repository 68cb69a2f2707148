package answers

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/wire/codec"
)

// This file contains a simple reader of CBOR. It decodes the whole answer to a tree, and then
// converts the tree to a [codec.Page].

type pair struct{ key, value any }
type cborList []any
type cborDict []pair
type cborNil struct{}
type cborSimple byte

var errNaive = errors.New("malformed")

type naive struct {
	in []byte
}

func (n *naive) take(k uint64) ([]byte, error) {
	if k > uint64(len(n.in)) {
		return nil, errNaive
	}
	b := n.in[:k]
	n.in = n.in[k:]
	return b, nil
}

// item reads one item, or a break.
func (n *naive) item(depth, tags int) (v any, isBreak bool, err error) {
	if tags > 16 {
		return nil, false, errNaive
	}
	h, err := n.take(1)
	if err != nil {
		return nil, false, err
	}
	major, info := h[0]>>5, h[0]&31
	if h[0] == 0xff {
		return nil, true, nil
	}
	arg := uint64(info)
	if info >= 24 && info <= 27 {
		b, err := n.take(1 << (info - 24))
		if err != nil {
			return nil, false, err
		}
		arg = 0
		for _, c := range b {
			arg = arg*256 + uint64(c)
		}
	} else if info > 27 && (info != 31 || major < 2 || major > 5) {
		return nil, false, errNaive
	}
	open := info == 31
	switch major {
	case 0, 1:
		return int128{arg, major == 1}, false, nil
	case 2, 3:
		var b []byte
		if !open {
			if b, err = n.take(arg); err != nil {
				return nil, false, err
			}
		}
		for open {
			if len(n.in) > 0 && n.in[0] != 0xff && (n.in[0]>>5 != major || n.in[0]&31 == 31) {
				return nil, false, errNaive
			}
			v, end, err := n.item(depth, 0)
			if err != nil {
				return nil, false, err
			}
			if end {
				break
			}
			switch v := v.(type) {
			case []byte:
				b = append(b, v...)
			case string:
				b = append(b, v...)
			}
		}
		if major == 3 {
			return string(b), false, nil
		}
		return append([]byte{}, b...), false, nil
	case 4, 5:
		var all []any
		if !open && arg > uint64(len(n.in)) {
			return nil, false, errNaive
		}
		for i := uint64(0); open || i < arg*uint64(major-3); i++ {
			v, end, err := n.item(depth+1, 0)
			if err != nil {
				return nil, false, err
			}
			if end {
				if !open || (major == 5 && i%2 == 1) {
					return nil, false, errNaive
				}
				break
			}
			all = append(all, v)
		}
		if major == 4 {
			return cborList(all), false, nil
		}
		var m cborDict
		for i := 0; i+1 < len(all); i += 2 {
			m = append(m, pair{all[i], all[i+1]})
		}
		return m, false, nil
	case 6:
		v, end, err := n.item(depth, tags+1)
		if end {
			err = errNaive
		}
		return v, false, err
	}
	switch {
	case info == 22 || info == 23:
		return cborNil{}, false, nil
	case info == 24 && arg < 32:
		return nil, false, errNaive
	case info == 25:
		return half(uint16(arg)), false, nil
	case info == 26:
		return float64(math.Float32frombits(uint32(arg))), false, nil
	case info == 27:
		return math.Float64frombits(arg), false, nil
	}
	return cborSimple(arg), false, nil
}

// half decodes a 16-bit floating-point number.
func half(bits uint16) float64 {
	sign, exp, frac := 1-2*float64(bits>>15), float64(bits>>10&31), float64(bits&1023)/1024
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * frac * math.Pow(2, -14)
	}
	return sign * (1 + frac) * math.Pow(2, exp-15)
}

type int128 struct {
	arg      uint64
	negative bool
}

func (i int128) int64() (int64, error) {
	if i.arg > math.MaxInt64 {
		return 0, errNaive
	}
	if i.negative {
		return -1 - int64(i.arg), nil
	}
	return int64(i.arg), nil
}

// Tree decodes CBOR and formats the result with fmt.
func Tree(body []byte) (string, error) {
	n := &naive{in: body}
	v, end, err := n.item(0, 0)
	if err != nil || end || len(n.in) > 0 {
		return "", errNaive
	}
	return fmt.Sprint(v), nil
}

// NaiveDecode decodes a page from CBOR. To keep the code short, it panics internally with errNaive.
func NaiveDecode(body []byte) (p *codec.Page, err error) {
	n := &naive{in: body}
	v, end, err := n.item(0, 0)
	if err != nil || end || len(n.in) > 0 {
		return nil, errNaive
	}
	defer func() {
		if r := recover(); r == errNaive { //nolint:errorlint // compared with itself
			p, err = nil, errNaive
		} else if r != nil {
			panic(r)
		}
	}()
	return naivePage(v), nil
}

func must[T any](v any) T {
	t, ok := v.(T)
	if !ok {
		panic(errNaive)
	}
	return t
}

func naivePage(v any) *codec.Page {
	p := &codec.Page{Behind: -1}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "Records":
			p.Records, p.Bytes = nil, 0
			for _, v := range must[cborList](m.value) {
				r := naiveRecord(v, p)
				p.Bytes += len(r.Data) + len(r.Key)
				p.Records = append(p.Records, r)
			}
		case "MillisBehindLatest":
			p.Behind = behind(naiveInt(m.value))
		case "NextShardIterator":
			p.Next = must[string](m.value)
		case "ChildShards":
			p.Children = nil
			for _, v := range must[cborList](m.value) {
				p.Children = append(p.Children, naiveChild(v))
			}
		}
	}
	return p
}

func naiveInt(v any) int64 {
	if i, ok := v.(int128); ok {
		n, err := i.int64()
		if err != nil {
			panic(errNaive)
		}
		return n
	}
	f := must[float64](v)
	if math.IsNaN(f) || math.Abs(f) > 1<<53 {
		panic(errNaive)
	}
	return int64(f)
}

func naiveRecord(v any, p *codec.Page) (r codec.Record) {
	if v == (any)(cborNil{}) {
		return r
	}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "Data":
			if s, ok := m.value.(string); ok {
				b, err := base64.StdEncoding.DecodeString(s)
				if err != nil {
					panic(errNaive)
				}
				r.Data, p.Text = b, true
				continue
			}
			r.Data = must[[]byte](m.value)
		case "PartitionKey":
			r.Key = must[string](m.value)
		case "SequenceNumber":
			r.SequenceNumber = must[string](m.value)
		case "EncryptionType":
			r.Encrypted = must[string](m.value) == "KMS"
		case "ApproximateArrivalTimestamp":
			var ms float64
			if i, ok := m.value.(int128); ok {
				n, err := i.int64()
				if err != nil {
					panic(errNaive)
				}
				ms = float64(n)
			} else {
				ms = must[float64](m.value)
			}
			if math.Abs(ms) < 1e11 {
				ms *= 1000
			}
			if ms = math.Round(ms); math.IsNaN(ms) || ms < MinArrival || ms > MaxArrival {
				panic(errNaive)
			}
			r.Arrival = int64(ms)
		}
	}
	return r
}

func naiveChild(v any) (c types.ChildShard) {
	if v == (any)(cborNil{}) {
		return c
	}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "ShardId":
			c.ShardId = aws.String(must[string](m.value))
		case "ParentShards":
			c.ParentShards = []string{}
			for _, v := range must[cborList](m.value) {
				id := ""
				if v != (any)(cborNil{}) {
					id = must[string](v)
				}
				c.ParentShards = append(c.ParentShards, id)
			}
		case "HashKeyRange":
			c.HashKeyRange = new(types.HashKeyRange)
			for _, m := range must[cborDict](m.value) {
				if m.value == (any)(cborNil{}) {
					continue
				}
				switch m.key {
				case "StartingHashKey":
					c.HashKeyRange.StartingHashKey = aws.String(must[string](m.value))
				case "EndingHashKey":
					c.HashKeyRange.EndingHashKey = aws.String(must[string](m.value))
				}
			}
		}
	}
	return c
}
