package lease

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Streams contains the streams that a worker reads, as text for stores. The zero value means that
// the worker did not report them, like workers of earlier versions. Use [StreamsOf] to make one.
//
// The text is "1:" and the names, separated by spaces. If that would be too long, or if a name has
// unusual characters, the text is "2:" and the first six characters of each name's hash. A "+"
// precedes each stream that the worker has listed.
type Streams string

// MaxStreamsBytes is the maximum size of [Streams]. It is enough for 2,000 streams.
const MaxStreamsBytes = 16 << 10

const (
	streamNames  = "1:"
	streamHashes = "2:"
	listedMark   = "+"
	// maxStreamNames is the length of the text above which names are hashed.
	maxStreamNames = 1 << 10
	hashedName     = 6
)

// StreamsOf returns the Streams of a worker that reads the streams in names. The order of names
// does not matter. listed reports whether the worker has a recent listing of a stream's shards, and
// has seen a lease for each of them. A nil listed means that the worker has no listings. If there
// are too many names, StreamsOf returns the zero Streams.
func StreamsOf(names []string, listed func(name string) bool) Streams {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	plain := true
	mark := func(name string) string {
		if listed != nil && listed(name) {
			return listedMark
		}
		return ""
	}
	var text strings.Builder
	text.WriteString(streamNames)
	for i, name := range sorted {
		plain = plain && plainName(name)
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(mark(name) + name)
	}
	if !plain || text.Len() > maxStreamNames {
		text.Reset()
		text.WriteString(streamHashes)
		hashes := make([]string, 0, len(sorted))
		for _, name := range sorted {
			hashes = append(hashes, mark(name)+hashName(name))
		}
		slices.SortFunc(hashes, func(a, b string) int {
			return strings.Compare(strings.TrimPrefix(a, listedMark), strings.TrimPrefix(b, listedMark))
		})
		text.WriteString(strings.Join(slices.Compact(hashes), " "))
	}
	if text.Len() > MaxStreamsBytes {
		return ""
	}
	return Streams(text.String())
}

// plainName reports whether a name can be used in the text unchanged. This is true for all Kinesis
// names.
func plainName(name string) bool {
	return name != "" && !strings.HasPrefix(name, listedMark) && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

func hashName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:hashedName]
}

// Known reports whether the worker reported its streams.
func (s Streams) Known() bool {
	return strings.HasPrefix(string(s), streamNames) || strings.HasPrefix(string(s), streamHashes)
}

// Has reports whether the worker reads a stream. It returns false for unknown Streams.
func (s Streams) Has(name string) bool { return s.has(name, false) }

// Listed reports whether the worker reads a stream and has listed its shards.
func (s Streams) Listed(name string) bool { return s.has(name, true) }

func (s Streams) has(name string, listed bool) bool {
	if strings.HasPrefix(string(s), streamHashes) {
		name = hashName(name)
	} else if !s.Known() {
		return false
	}
	for entry := range strings.SplitSeq(string(s[len(streamNames):]), " ") {
		rest, marked := strings.CutPrefix(entry, listedMark)
		if rest == name && rest != "" && (marked || !listed) {
			return true
		}
	}
	return false
}

// Names returns the sorted names. all is false if the worker did not report them, or if only their
// hashes are stored.
func (s Streams) Names() (names []string, all bool) {
	list, all := strings.CutPrefix(string(s), streamNames)
	if !all || list == "" {
		return nil, all
	}
	for entry := range strings.SplitSeq(list, " ") {
		names = append(names, strings.TrimPrefix(entry, listedMark))
	}
	return names, true
}

// Same reports whether two workers read the same streams. It returns true if one of them did not
// report its streams.
func (s Streams) Same(other Streams) bool {
	return !s.Known() || !other.Known() || s.unmarked() == other.unmarked()
}

// unmarked returns s without the marks of listings.
func (s Streams) unmarked() Streams { return Streams(strings.ReplaceAll(string(s), listedMark, "")) }

// clipStreams returns s if stores can store it, and otherwise the zero Streams.
func clipStreams(s Streams) Streams {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(s) > MaxStreamsBytes || strings.ContainsFunc(string(s), odd) {
		return ""
	}
	return s
}

// Unread returns the streams with unfinished leases that no live worker reads, sorted. It omits
// paused streams. It returns nothing if no worker is alive, or if a live worker did not report its
// streams.
func Unread(v View) []string {
	if slices.Contains(v.Paused, "") {
		return nil
	}
	var unread []string
	for i := range v.Leases {
		l := &v.Leases[i]
		if l.Finished() || slices.Contains(unread, l.Stream) || slices.Contains(v.Paused, l.Stream) {
			continue
		}
		read := !slices.ContainsFunc(v.Workers, func(w Worker) bool { return !w.Ended })
		for j := range v.Workers {
			w := &v.Workers[j]
			read = read || !w.Ended && (!w.Streams.Known() || w.Streams.Has(l.Stream))
		}
		if !read {
			unread = append(unread, l.Stream)
		}
	}
	slices.Sort(unread)
	return unread
}

// Withheld returns the streams whose leases no worker gets because of a rolling upgrade, sorted. No
// live worker reports that it reads such a stream. The leader does not give leases of such a stream
// to workers of an earlier version, because they do not report their streams.
func Withheld(v View) []string {
	older, leads := false, false
	for i := range v.Workers {
		w := &v.Workers[i]
		if w.Ended {
			continue
		}
		older = older || !w.Leaving && !w.Streams.Known()
		leads = leads || w.Session == v.Leader.Session && w.Streams.Known()
	}
	if !older || !leads {
		return nil
	}
	reads := func(stream string) bool {
		return slices.ContainsFunc(v.Workers, func(w Worker) bool { return !w.Ended && w.Streams.Has(stream) })
	}
	open := map[Key]bool{}
	for i := range v.Leases {
		open[v.Leases[i].Key] = !v.Leases[i].Finished()
	}
	var withheld []string
	for i := range v.Leases {
		l := &v.Leases[i]
		waits := slices.ContainsFunc(l.Parents, func(id string) bool { return open[Key{Stream: l.Stream, Shard: id}] })
		if l.Owner != "" || l.Finished() || waits || slices.Contains(v.Paused, l.Stream) || slices.Contains(withheld, l.Stream) || reads(l.Stream) {
			continue
		}
		withheld = append(withheld, l.Stream)
	}
	slices.Sort(withheld)
	return withheld
}

// StreamsDiffer reports whether two live workers of a view read different streams.
func StreamsDiffer(v View) bool {
	var first Streams
	for i := range v.Workers {
		w := &v.Workers[i]
		switch {
		case w.Ended || w.Leaving || !w.Streams.Known():
		case first == "":
			first = w.Streams
		case !first.Same(w.Streams):
			return true
		}
	}
	return false
}

// DescribeStreams returns sentences for people about two problems: live workers of a view read
// different streams, or no live worker reads or gets the leases of a stream. It returns nothing if
// there is no problem.
func DescribeStreams(v View) (sentences []string) {
	if StreamsDiffer(v) {
		var each []string
		said := map[Streams]bool{}
		for i := range v.Workers {
			w := &v.Workers[i]
			if text := w.Streams.unmarked(); !w.Ended && !w.Leaving && w.Streams.Known() && !said[text] {
				said[text] = true
				each = append(each, cmp.Or(w.Name, w.Session)+" reads "+w.Streams.describe())
			}
		}
		slices.Sort(each)
		more := ""
		if len(each) > 4 {
			each, more = each[:4], "; more workers read other streams"
		}
		sentences = append(sentences, "workers read different streams, and each gets only shards of the streams that it reads: "+strings.Join(each, "; ")+more)
	}
	for _, name := range Withheld(v) {
		sentences = append(sentences, "no worker that reports its streams reads the stream "+name+
			", and workers of an older version get no more of its shards; replace them with workers of this version")
	}
	for _, name := range Unread(v) {
		sentences = append(sentences, "the application has leases for the stream "+name+", and no live worker reads it")
	}
	return sentences
}

// describe lists the streams, or the first of them if there are many.
func (s Streams) describe() string {
	names, all := s.Names()
	switch {
	case !all:
		return "many streams"
	case len(names) == 0:
		return "no stream"
	case len(names) > 5:
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	default:
		return strings.Join(names, ", ")
	}
}
