package put

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func queueOf(loose bool, keys ...string) *Queue {
	q := &Queue{Loose: loose}
	for i, k := range keys {
		q.Add(Entry{Key: k, Data: []byte("x"), Line: int64(i + 1)})
	}
	return q
}

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		queue *Queue
		want  []int
	}{
		"an empty queue gives nothing":             {queueOf(false), nil},
		"one record of each key goes, the oldest":  {queueOf(false, "a", "b", "a", "c", "b"), []int{0, 1, 3}},
		"loose order sends the oldest of any key":  {queueOf(true, "a", "b", "a", "c", "b"), []int{0, 1, 2, 3, 4}},
		"a single key goes one record at a time":   {queueOf(false, "a", "a", "a"), []int{0}},
		"at most 500 records go, loose":            {queueOf(true, slices.Repeat([]string{"a"}, 501)...), upTo(500)},
		"at most 500 records go, with 600 keys":    {queueOf(false, distinct(600)...), upTo(500)},
		"keys of the second half are found behind": {queueOf(false, append(slices.Repeat([]string{"hot"}, 2000), "cold")...), []int{0, 2000}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.queue.Next(); !slices.Equal(got, c.want) {
				t.Errorf("Next() = %v, want %v", got, c.want)
			}
		})
	}
}

func TestNextKeepsToTheBytes(t *testing.T) {
	q := &Queue{}
	for i := range 4 {
		q.Add(Entry{Key: fmt.Sprint(i), Data: make([]byte, MaxBytes/2-1), Line: int64(i + 1)})
	}
	if got := q.Next(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("Next() = %v, want the two that fit", got)
	}
	q = &Queue{}
	q.Add(Entry{Key: "big", Data: make([]byte, 2*MaxBytes), Line: 1})
	q.Add(Entry{Key: "small", Line: 2})
	if got := q.Next(); !slices.Equal(got, []int{0}) {
		t.Errorf("Next() = %v, want the large one alone", got)
	}
}

func TestThroughAndBeyond(t *testing.T) {
	q := &Queue{}
	for _, line := range []int64{3, 4, 7, 9} { // lines between were empty
		q.Add(Entry{Key: fmt.Sprint(line), Data: []byte("data"), Line: line})
	}
	check := func(through, beyond int64) {
		t.Helper()
		if q.Through() != through || q.Beyond() != beyond {
			t.Errorf("Through, Beyond = %d, %d, want %d, %d", q.Through(), q.Beyond(), through, beyond)
		}
	}
	check(2, 0)
	q.Done([]int{0, 1, 2, 3}, []bool{true, false, true, false})
	check(3, 1)
	q.Done([]int{0, 1}, []bool{false, true})
	check(3, 2)
	q.Done([]int{0}, []bool{true})
	check(9, 0)
	if q.Bytes() != 0 || q.Len() != 0 {
		t.Errorf("an empty queue holds %d entries, %d bytes", q.Len(), q.Bytes())
	}
}

// A service that refuses records at random never makes a key overtake itself, and nothing is lost
// or sent twice.
func TestOrderOfEachKeyIsKept(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := &Queue{}
		var lines int64
		taken := map[string][]int64{}
		count := 0
		for count < 2000 {
			for lines < 2000 && q.Len() < 100 {
				lines++
				q.Add(Entry{Key: fmt.Sprint(rnd.IntN(1 + rnd.IntN(30))), Line: lines})
			}
			picked := q.Next()
			ok := make([]bool, len(picked))
			for i, at := range picked {
				if ok[i] = rnd.IntN(3) > 0; ok[i] {
					e := q.Entry(at)
					taken[e.Key] = append(taken[e.Key], e.Line)
					count++
				}
			}
			q.Done(picked, ok)
		}
		if q.Len() != 0 || q.Through() != 2000 {
			t.Fatalf("seed %d: %d entries are left, through line %d", seed, q.Len(), q.Through())
		}
		total := 0
		for key, lines := range taken {
			total += len(lines)
			if !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
				t.Fatalf("seed %d: key %s went in the order %v", seed, key, lines)
			}
		}
		if total != 2000 {
			t.Fatalf("seed %d: %d records were taken, want 2000", seed, total)
		}
	}
}

func TestPauseGrowsAndEnds(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 6: 1600 * time.Millisecond, 99: 1600 * time.Millisecond} {
		if low, high := pause(n, 0), pause(n, 0.999); low != want/2 || high < low || high > want {
			t.Errorf("pause(%d) lies in %v to %v, want %v to %v", n, low, high, want/2, want)
		}
	}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func distinct(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	return keys
}
