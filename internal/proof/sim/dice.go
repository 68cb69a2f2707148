package sim

import "time"

// dice is a sequence of pseudo-random numbers. A seed and a name determine it.
type dice struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// roll returns the dice for a seed and a name.
func roll(seed uint64, name string, more ...uint64) dice {
	return rolled(seed, named(unnamed, name), more...)
}

const unnamed = uint64(14695981039346656037)

// named adds a name to a hash. Callers can add several parts without joining them first.
func named(h uint64, name string) uint64 {
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * (1<<40 + 0x1b3)
	}
	return h
}

// numbered adds the eight bytes of a number to a hash.
func numbered(h, n uint64) uint64 {
	for range 8 {
		h = (h ^ n&255) * (1<<40 + 0x1b3)
		n >>= 8
	}
	return h
}

func rolled(seed, h uint64, more ...uint64) dice {
	d := dice{h ^ seed*golden}
	for _, m := range more {
		d.state ^= mix(m + golden)
		d.state = mix(d.state)
	}
	return d
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) next() uint64 {
	d.state += golden
	return mix(d.state)
}

// chance returns true with probability p.
func (d *dice) chance(p float64) bool { return float64(d.next()>>11)/(1<<53) < p }

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// span returns a duration from low to high.
func (d *dice) span(low, high time.Duration) time.Duration {
	return low + time.Duration(d.next()%uint64(high-low+1))
}

// often returns a duration from low to high. Short durations are more likely.
func (d *dice) often(low, high time.Duration) time.Duration {
	a := d.span(low, high)
	return min(a, min(d.span(low, high), d.span(low, high)))
}
