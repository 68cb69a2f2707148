package polling

import (
	"errors"
	"testing"

	"github.com/weir-go/weir/internal/wire/codec"
)

func TestWhatFollowsWhenATurnBegins(t *testing.T) {
	for name, c := range map[string]struct {
		had, parts int
		fits, late bool
		want       admission
	}{
		"there is memory":                          {1, 0, true, false, asks},
		"there is memory at last":                  {1, 0, false, true, asks},
		"its handler has pages":                    {0, 1, true, false, afterOwn},
		"its handler has pages, however late":      {0, 2, false, true, afterOwn},
		"others give back soon":                    {0, 0, true, false, tryLater},
		"others do not give back":                  {0, 0, true, true, waitsInLine},
		"a record is larger than a share can have": {0, 0, false, false, waitsInLine},
	} {
		if got := admissionOf(c.had, c.parts, c.fits, c.late); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestHowAFeedAsksAfterARead(t *testing.T) {
	lack := func(n int, one bool) error { return &codec.NoMemoryError{Bytes: n, One: one} }
	const share = 2 * mib
	for name, c := range map[string]struct {
		before        reading
		err           error
		got           taken
		hungry, parts bool
		mean          int32
		want          reading
	}{
		"all is well": {reading{limit: 1000}, nil, taken{asked: 1000, records: 10, bytes: 100, memory: 4096}, true, false, 409, reading{limit: 1000}},
		"one record does not fit": {
			reading{limit: 1000}, lack(mib, true), taken{asked: 1000}, true, false, 0, reading{limit: 1000, needs: mib},
		},
		"one record was asked for and does not fit": {reading{limit: 1}, lack(mib, false), taken{asked: 1}, true, false, 0, reading{limit: 1, needs: mib}},
		"nothing is known of the records":           {reading{limit: 1000}, lack(mib, false), taken{asked: 1000}, true, false, 0, reading{limit: 1}},
		"records are known to be small": {
			reading{limit: 10_000}, lack(10*mib, false), taken{asked: 10_000}, true, false, 1024, reading{limit: 2048},
		},
		"the limit is halved at least": {reading{limit: 1000}, lack(mib, false), taken{asked: 1000}, true, false, 1, reading{limit: 500}},
		"its handler has pages":        {reading{limit: 1000}, lack(mib, true), taken{asked: 1000}, true, true, 0, reading{limit: 1000, short: true}},
		"a part has come": {
			reading{limit: 1000}, lack(mib, false), taken{asked: 1000, records: 100, bytes: 100 << 10}, true, true, 0, reading{limit: 128, short: true},
		},
		"the record has come": {
			reading{limit: 1000, needs: mib}, nil, taken{asked: 1, records: 1, bytes: 100, memory: 4096}, true, false, 4096, reading{limit: 1000},
		},
		"nothing has come yet":    {reading{limit: 10, needs: mib}, nil, taken{asked: 1, memory: 4096}, true, false, 0, reading{limit: 10, needs: mib}},
		"the read failed":         {reading{limit: 10, needs: mib}, errors.New("refused"), taken{asked: 1}, true, false, 0, reading{limit: 10, needs: mib}},
		"the tip was reached":     {reading{limit: 10, needs: mib}, nil, taken{asked: 1, tip: true}, true, false, 0, reading{limit: 10}},
		"a whole answer must fit": {reading{limit: 8}, nil, taken{asked: 8, records: 8, bytes: mib, memory: 4 * mib, whole: true}, true, false, 512 << 10, reading{limit: 4}},
		"an answer in parts need not": {
			reading{limit: 8}, nil, taken{asked: 8, records: 8, bytes: mib, memory: 4 * mib}, true, false, 512 << 10, reading{limit: 16},
		},
	} {
		if got := c.before.after(c.err, c.got, c.hungry, c.parts, c.mean, 10_000, anyRoom, share); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
