package aggregate

import (
	"iter"
	"slices"
)

// Tags are pairs of strings that are stored with a sub-record, such as the trace context of its
// producer. The format has a field for them, which the KPL never sets. Readers that ignore the
// field still work, for example the Java KCL. The zero value has no tags. Tags are a small
// immutable value: [Tags.With] returns a new one.
type Tags struct {
	encoded []byte // fields of a Record: all tags, and possibly others, which are skipped
}

// With returns t with another tag at the end. key and value should be UTF-8, but this is not
// checked.
func (t Tags) With(key, value string) Tags {
	inner := chunkSize(len(key)) + chunkSize(len(value))
	b := slices.Grow(slices.Clip(t.encoded), chunkSize(inner))
	b = appendVarint(append(b, tagsTag), inner)
	b = append(appendVarint(append(b, tagKeyTag), len(key)), key...)
	b = append(appendVarint(append(b, tagValueTag), len(value)), value...)
	return Tags{b}
}

// All iterates over the keys and values of the tags, in order, including repeated keys.
func (t Tags) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for key, value := range t.pairs() {
			if !yield(string(key), string(value)) {
				return
			}
		}
	}
}

// Get returns the value of the first tag with a key. ok is false if there is none.
func (t Tags) Get(key string) (value string, ok bool) {
	for k, v := range t.pairs() {
		if string(k) == key {
			return string(v), true
		}
	}
	return "", false
}

// pairs iterates over the tags in encoded form.
func (t Tags) pairs() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for p := 0; p < len(t.encoded); {
			tag, value, after := fieldAt(t.encoded, p)
			if tag == tagsTag && !yield(pair(value)) {
				return
			}
			p = after
		}
	}
}

// Size returns the number of bytes that the tags add to a packed record.
func (t Tags) Size() int { return len(t.encoded) }

// IsZero reports whether there are no tags.
func (t Tags) IsZero() bool { return len(t.encoded) == 0 }

// Clone returns a copy of t that does not refer to the payload.
func (t Tags) Clone() Tags { return Tags{slices.Clone(t.encoded)} }

// pair parses the message of a Tag. If a field is repeated, the last one counts.
func pair(b []byte) (key, value []byte) {
	for p := 0; p < len(b); {
		tag, part, after := fieldAt(b, p)
		switch tag {
		case tagKeyTag:
			key = part
		case tagValueTag:
			value = part
		}
		p = after
	}
	return key, value
}

// fieldAt parses the field at b[p:]. It returns the tag, the bytes of a field with a length, and
// the index after the field. b must be a valid message, as checked by Parse. If b is invalid, after
// is len(b), so that the caller stops reading.
func fieldAt(b []byte, p int) (tag uint64, value []byte, after int) {
	tag, p = uvarint(b, p)
	if p == 0 {
		return 0, nil, len(b)
	}
	start, end := chunk(b, p)
	if tag&7 != length {
		start, end = p, skip(b, p, tag, maxDepth)
	}
	if end == 0 {
		return 0, nil, len(b)
	}
	return tag, b[start:end], end
}

// Tags returns the tags of the sub-record. Most sub-records have no tags. The tags refer to the
// payload.
func (r Record) Tags() Tags {
	if len(r.a.tags) == 0 {
		return Tags{}
	}
	return r.a.tagsOf(r.e.sub)
}

func (a *Aggregate) tagsOf(sub uint32) Tags {
	i, found := slices.BinarySearchFunc(a.tags, sub, func(t tagged, sub uint32) int { return int(t.sub) - int(sub) })
	if !found {
		return Tags{}
	}
	in := a.tags[i].in
	return Tags{a.msg[in.start:in.end:in.end]}
}

// tagged contains the place of a sub-record's tags.
type tagged struct {
	sub uint32
	in  span
}
