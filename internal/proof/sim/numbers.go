package sim

import (
	"encoding/binary"
	"slices"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
)

// numbering numbers the records of aggregates that no producer puts. It uses some numbers again, so
// that these records are repeats.
type numbering struct {
	last map[string]uint64 // the highest number of a key
	used map[aggregate.Number][]numberedCopy
}

// numberedCopy is a record with a number.
type numberedCopy struct {
	sh *model.Shard
	id judge.ID
}

// makeNumbers decides whether aggregates have numbers, and whether the application drops repeats.
func (w *world) makeNumbers() {
	d := roll(w.seed, "numbers")
	if w.isFirst() && w.crosses.has(featAggregated) && d.chance(.7) {
		w.numbers = &numbering{last: map[string]uint64{}, used: map[aggregate.Number][]numberedCopy{}}
	}
	// The results of windows are compared with all records.
	w.drops = w.numbers != nil && !w.crosses.has(featKeepPacked) && w.windows == nil && d.chance(.9)
}

// next returns the number of the next record of a key.
func (n *numbering) next(key string, d *dice) aggregate.Number {
	of := aggregate.Number{Series: mix(stirred(1, key)) | 1, N: n.last[key] + 1 + uint64(d.below(5)/4)}
	if n.last[key] > 0 && d.chance(.3) {
		of.N = n.last[key] - uint64(d.below(int(min(n.last[key], 12))))
	}
	n.last[key] = max(n.last[key], of.N)
	return of
}

// field returns the field of a container with these numbers, with a run for each record.
func field(numbers []aggregate.Number) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(append(b, 3), n.Series)
		b = binary.AppendUvarint(b, n.N)
	}
	return b
}

// noteNumbers tells the judges which records of a container need not be handled, because an earlier
// record that the application reads has the same number.
func (w *world) noteNumbers(st *stream, sh *model.Shard, numbers []aggregate.Number, ids []judge.ID) {
	for i, n := range numbers {
		before := w.numbers.used[n]
		for _, x := range w.reads(st) {
			reads := func(c numberedCopy) bool {
				return descends(sh, c.sh) && x.chosen.has(c.sh) && !x.books.early[c.id]
			}
			if x.drops && x.chosen.has(sh) && slices.ContainsFunc(before, reads) {
				x.books.repeats[ids[i]] = true
				x.judge.Exempt(ids[i])
			}
		}
		w.numbers.used[n] = append(before, numberedCopy{sh, ids[i]})
	}
}
