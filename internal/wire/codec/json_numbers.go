package codec

import "math"

// decimal is the number ±digits·10^exp. Digits after the 18th are dropped.
type decimal struct {
	digits   int64
	exp      int
	negative bool
	integral bool // the number has no fraction and no exponent
	dropped  bool
}

func (d *jsonReader) number() (decimal, error) {
	if _, err := d.peek(); err != nil {
		return decimal{}, err
	}
	n := decimal{integral: true}
	b, i := d.b, d.i
	if b[i] == '-' {
		n.negative = true
		i++
	}
	from := i
	i = n.take(b, i, 0)
	if i == from || (b[from] == '0' && i-from > 1) {
		return n, d.noNumber(i)
	}
	if i < len(b) && b[i] == '.' {
		n.integral = false
		from = i + 1
		if i = n.take(b, from, -1); i == from {
			return n, d.noNumber(i)
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		n.integral = false
		negative := false
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			negative = b[i] == '-'
			i++
		}
		from = i
		exp := 0
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			exp = min(exp*10+int(b[i]-'0'), 1_000_000_000)
			i++
		}
		if i == from {
			return n, d.noNumber(i)
		}
		if negative {
			exp = -exp
		}
		n.exp += exp
	}
	if i == len(b) {
		return n, d.short() // the number may continue, because another byte always follows a number
	}
	d.i = i
	return n, nil
}

// noNumber returns the error for an invalid number at b[i].
func (d *jsonReader) noNumber(i int) error {
	if i == len(d.b) {
		return d.short()
	}
	return d.malformed("expected a number")
}

// take consumes decimal digits of the integer (place 0) or of the fraction (place -1).
func (n *decimal) take(b []byte, i, place int) int {
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		switch {
		case n.digits < 100_000_000_000_000_000:
			n.digits = n.digits*10 + int64(b[i]-'0')
			n.exp += place
		case place == 0:
			n.exp++
			n.dropped = true
		default:
			n.dropped = true
		}
	}
	return i
}

func (d *jsonReader) integer() (int64, error) {
	at := d.i
	n, err := d.number()
	if err != nil {
		return 0, err
	}
	if !n.integral {
		d.i = at
		return 0, d.malformed("expected a whole number")
	}
	if n.dropped || n.exp != 0 {
		return exactInteger(d, n)
	}
	if n.negative {
		return -n.digits, nil
	}
	return n.digits, nil
}

// exactInteger reads integers of 19 digits, which may fit into an int64.
func exactInteger(d *jsonReader, n decimal) (int64, error) {
	end, from := d.i, d.i
	for from > 0 && '0' <= d.b[from-1] && d.b[from-1] <= '9' {
		from--
	}
	var v uint64
	for _, c := range d.b[from:end] {
		digit := uint64(c - '0')
		if v > (math.MaxUint64-digit)/10 {
			return 0, d.malformed("a number out of range")
		}
		v = v*10 + digit
	}
	if n.negative && v <= 1<<63 {
		return int64(-v), nil
	}
	if v > math.MaxInt64 {
		return 0, d.malformed("a number out of range")
	}
	return int64(v), nil
}

// arrival reads a time in seconds, in any form of a number, and returns milliseconds.
func (d *jsonReader) arrival() (int64, error) {
	n, err := d.number()
	if err != nil {
		return 0, err
	}
	ms := n.digits
	exp := n.exp + 3
	for ; exp > 0 && ms != 0; exp-- {
		if ms > maxArrival {
			return 0, d.malformed("a time out of range")
		}
		ms *= 10
	}
	for ; exp < 0 && ms != 0; exp++ {
		ms /= 10
	}
	if n.negative {
		ms = -ms
	}
	if ms < minArrival || ms > maxArrival {
		return 0, d.malformed("a time out of range")
	}
	return ms, nil
}
