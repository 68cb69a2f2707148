package verdict

import (
	"cmp"
	"fmt"
	"slices"
)

// Letter is a dead letter that the destination received.
type Letter struct {
	Put
	ID, Life, Shard string
	Epoch           uint64
	At              int64
	// Confirmed means that the destination confirmed the letter. A dead letter that is not
	// confirmed may be stored again.
	Confirmed bool
}

// AppendLetter appends the line for a letter.
func AppendLetter(b []byte, l Letter) []byte {
	confirmed := 0
	if l.Confirmed {
		confirmed = 1
	}
	return fmt.Appendf(b, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d\n", l.Key, l.Number, l.Put.At, l.ID, l.Life, l.Shard, l.Epoch, l.At, confirmed)
}

// ParseLetters parses lines of letters.
func ParseLetters(text []byte) (letters []Letter, err error) {
	_, err = lines(text, func(f *fields) {
		l := Letter{Put: f.put(), ID: f.text(), Life: f.text(), Shard: f.text(), Epoch: f.epoch(), At: f.number()}
		l.Confirmed = f.number() == 1
		letters = append(letters, l)
	})
	return letters, err
}

// letters finds the following problems with dead letters:
//
//   - Letters of records that are not poison. They would have succeeded later.
//   - Letters of records that had been handled before.
//   - Two dead letters of a record with different IDs, and two records with the same ID.
//   - Letters that are stored again although they were confirmed, without another owner in between.
//
// A record with a dead letter does not count as lost.
func (j *judge) letters() {
	j.given = map[Put]*Letter{}
	if len(j.Letters) == 0 {
		return
	}
	of, known := map[string]Put{}, map[Put]bool{}
	for _, p := range j.Puts {
		known[p] = true
	}
	all := slices.Clone(j.Letters)
	slices.SortStableFunc(all, func(a, b Letter) int { return cmp.Compare(a.At, b.At) })
	for i := range all {
		l := &all[i]
		if !known[l.Put] {
			j.violation("letter", "%s gave up number %d of key %s, which was never put", l.Life, l.Number, l.Key)
			continue
		}
		if !j.Poison(l.Put) {
			j.violation("letter", "%s gave up number %d of key %s, which can be handled", l.Life, l.Number, l.Key)
		}
		if h := j.first[l.Put]; h != nil && h.End < l.At {
			j.violation("letter", "%s gave up number %d of key %s, which %s had handled", l.Life, l.Number, l.Key, h.life)
		}
		if p, there := of[l.ID]; there && p != l.Put {
			j.violation("letter", "the dead letters of number %d of key %s and of number %d of key %s have the ID %s", p.Number, p.Key, l.Number, l.Key, l.ID)
		}
		of[l.ID] = l.Put
		before := j.given[l.Put]
		switch {
		case before == nil:
			j.v.GivenUp++
		case before.ID != l.ID:
			j.violation("letter", "number %d of key %s has dead letters with the IDs %s and %s", l.Number, l.Key, before.ID, l.ID)
		case before.Confirmed && before.Epoch == l.Epoch && before.Life == l.Life:
			j.violation("letter", "%s gave up number %d of key %s again, at epoch %d, although that was confirmed", l.Life, l.Number, l.Key, l.Epoch)
		}
		j.given[l.Put] = l
	}
}
