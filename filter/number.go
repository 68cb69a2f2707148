package filter

import "strconv"

// comparable converts a JSON number to a double. ok is false if the shortest text of the double is
// another number, because the JSON number has too many digits, or is too large or too small. Such a
// number is only equal to the same text.
func comparable(s []byte) (n float64, ok bool) {
	n, err := strconv.ParseFloat(unsafeString(s), 64)
	if err != nil {
		return 0, false
	}
	var buf [32]byte
	given, ok := decimalOf(s)
	kept, _ := decimalOf(strconv.AppendFloat(buf[:0], n, 'e', -1, 64))
	return n, ok && given == kept
}

// decimal is a number without its sign: 0.digits times ten to the power of exponent. Zero is the
// zero decimal.
type decimal struct {
	digits   [17]byte // enough for the text of a double
	count    int
	exponent int
}

// decimalOf parses a JSON number. It returns false if the number has too many digits.
func decimalOf(s []byte) (d decimal, ok bool) {
	zeros, point, i := 0, false, 0
	for ; i < len(s) && s[i]|0x20 != 'e'; i++ {
		c := s[i]
		switch {
		case c == '-':
			continue
		case c == '.':
			point = true
			continue
		case c == '0' && d.count == 0:
			if point {
				d.exponent--
			}
			continue
		case c == '0':
			zeros++
		case d.count+zeros >= len(d.digits):
			return d, false
		default:
			for ; zeros > 0; zeros-- {
				d.digits[d.count] = '0'
				d.count++
			}
			d.digits[d.count] = c
			d.count++
		}
		if !point {
			d.exponent++
		}
	}
	if d.count == 0 {
		return decimal{}, true
	}
	const most = 1 << 20 // far beyond doubles
	if i++; i < len(s) {
		minus := s[i] == '-'
		if minus || s[i] == '+' {
			i++
		}
		e := 0
		for ; i < len(s) && e < most; i++ {
			e = e*10 + int(s[i]-'0')
		}
		if minus {
			e = -e
		}
		d.exponent += e
	}
	return d, true
}
