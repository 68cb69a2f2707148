package wire

import (
	"testing"
	"time"
)

func TestHowLongSilenceIsBorne(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type some struct {
		n    int
		took time.Duration
	}
	for name, c := range map[string]struct {
		answers     []some
		least, most time.Duration
	}{
		"nothing is known":                         {nil, mostSilence, mostSilence},
		"too little is known":                      {[]some{{enoughAnswers - 1, ms}}, mostSilence, mostSilence},
		"fast":                                     {[]some{{enoughAnswers, 10 * ms}}, leastSilence, leastSilence},
		"at once":                                  {[]some{{100, 0}}, leastSilence, leastSilence},
		"four times what 99 of 100 take":           {[]some{{990, 10 * ms}, {11, 500 * ms}}, 2000 * ms, 2500 * ms},
		"one of 1,000 is slow":                     {[]some{{999, 10 * ms}, {1, 3000 * ms}}, leastSilence, leastSilence},
		"always 300 ms":                            {[]some{{500, 300 * ms}}, 1200 * ms, 1500 * ms},
		"always 2 s":                               {[]some{{enoughAnswers, 2000 * ms}}, mostSilence, mostSilence},
		"always longer than the maximum":           {[]some{{enoughAnswers, 6000 * ms}}, 0, 0},
		"an hour":                                  {[]some{{enoughAnswers, time.Hour}}, 0, 0},
		"one in three longer than the maximum":     {[]some{{80, 10 * ms}, {40, 9000 * ms}}, mostSilence, mostSilence},
		"one in fifty longer":                      {[]some{{98, 10 * ms}, {2, 9000 * ms}}, mostSilence, mostSilence},
		"it was slow, and is not any more":         {[]some{{1000, 2000 * ms}, {10 * rememberedFirst, 10 * ms}}, leastSilence, leastSilence},
		"it was fast, and 2 of 100 are slow since": {[]some{{10 * rememberedFirst, 10 * ms}, {20, 2000 * ms}}, mostSilence, mostSilence},
	} {
		s := newSilence("")
		for _, a := range c.answers {
			for range a.n {
				s.heard(a.took)
			}
		}
		if got := s.bound(); got < c.least || got > c.most {
			t.Errorf("%s: %v, want %v to %v", name, got, c.least, c.most)
		}
	}
}

// Every duration belongs to a size class. The limit of the class is at least the duration, and at
// most a quarter more.
func TestSizesOfFirstBytes(t *testing.T) {
	t.Parallel()
	last := 0
	for d := time.Millisecond; d < 30*time.Second; d += d/97 + 1 {
		size := sizeOf(d)
		if most := mostOf(size); size < last || most < d || most > d+d/4 {
			t.Fatalf("%v is of size %d, at most %v", d, size, most)
		}
		last = size
	}
	if sizeOf(-1) != 0 || sizeOf(0) != 0 || sizeOf(time.Hour) != len(firstBytes{}.counts)-1 {
		t.Error("what is too short or too long has no size")
	}
}

func TestHowManySecondTriesThereAre(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers, wanted, want int
	}{
		"a few before any answer": {0, 100, firstTries},
		"one for twenty answers":  {20 * 7, 100, firstTries + 7},
		"no more than fit":        {1_000_000, 1000, mostTries},
		"half of all":             {1000, 1000, firstTries + 50},
		"no part of one":          {19, 100, firstTries},
		"none are used":           {19, 0, 0},
	} {
		s := newSilence("")
		for range c.answers {
			s.heard(time.Millisecond)
		}
		got := 0
		for range c.wanted {
			if s.again() {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d second tries, want %d", name, got, c.want)
		}
	}
}

func TestSecondTriesAreToldOnceAMinute(t *testing.T) {
	t.Parallel()
	s, now := newSilence(""), time.Unix(1, 0)
	var told []int
	for range 10 {
		s.again()
		if n := s.news(now); n > 0 {
			told = append(told, n)
		}
		now = now.Add(20 * time.Second)
	}
	if len(told) != 4 || told[0] != 1 || told[1] != 3 || told[2] != 3 || told[3] != 3 {
		t.Errorf("told of %v", told)
	}
}
