package sqlstore

import (
	"math"
	"testing"
)

// FuzzDecodeSession reads rows of sessions that another program may have written. It uses the types
// that drivers return.
func FuzzDecodeSession(f *testing.F) {
	f.Add("s", "host 1", int64(3), int64(0), int64(1), 1.5, "2.25", int64(7), int64(9), "", "1s/5s/30s", uint8(0))
	f.Add("", "", int64(-1), int64(2), int64(-5), math.NaN(), "x", int64(math.MinInt64), int64(-1), `[{"Stream":"s"}]`, "", uint8(1))
	f.Add("s", "n", int64(1), int64(1), int64(1), math.Inf(1), "-1", int64(1<<40), int64(0), `{`, "1s/0s/30s", uint8(2))
	for _, weight := range []float64{0, -1, math.Inf(1), math.NaN()} { // each of these values is invalid
		f.Add("s", "n", int64(1), int64(0), int64(0), weight, "", int64(0), int64(0), "", "1s/5s/30s", uint8(0))
	}
	f.Add("s", "n", int64(1), int64(0), int64(0), 1.0, "", int64(-1), int64(0), "", "1s/5s/30s", uint8(0))
	f.Fuzz(func(t *testing.T, session, name string, beat, ended, leaving int64, weight float64, weightText string, most, holds int64, troubles, times string, form uint8) {
		row := []any{session, name, beat, ended, leaving, weight, most, holds, ended, troubles, times, "1:orders"}
		switch form % 5 {
		case 1:
			row[5] = []byte(weightText)
		case 2:
			row[0], row[9], row[10] = []byte(session), []byte(troubles), []byte(times)
		case 3:
			row[3], row[4], row[8] = ended > 0, leaving > 0, nil
		case 4:
			row = row[:int(uint64(beat)%12)]
		}
		w, err := decodeSession(row)
		if err != nil {
			if w.Name != "" || w.Session != "" {
				t.Errorf("an error and a worker: %v", w)
			}
			return
		}
		if !(w.Weight > 0) || math.IsInf(w.Weight, 0) || w.MaxLeases < 0 || w.Session != session || w.Times.String() != times {
			t.Errorf("%q is read as %+v", row, w)
		}
	})
}
