package http1

import "bytes"

const (
	defaultMaxHead = 64 << 10 // bytes
	maxFields      = 256
)

// head contains the fields of an answer's head that concern its length and the connection.
type head struct {
	status    int
	minor     int   // minor version of HTTP/1.minor
	length    int64 // the Content-Length; -1 if absent
	chunked   bool
	close     bool
	keepAlive bool
}

// headEnd searches b for the end of a head. The first from bytes are whole lines that were already
// searched. It returns the length of the head including its empty line, or 0 if more bytes are
// needed. lines is the number of bytes that are whole lines.
func headEnd(b []byte, from int) (end, lines int, err error) {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, from, nil
		}
		line := b[from : from+i]
		if i == 0 || line[i-1] != '\r' {
			return 0, from, malformed("a line of the head ends without CR")
		}
		from += i + 1
		if i == 1 {
			return from, from, nil
		}
	}
}

// parseHead parses a whole head including its empty line. All lines must end in CR LF.
func parseHead(b []byte) (head, error) {
	h := head{length: -1}
	i := bytes.IndexByte(b, '\n')
	if err := h.parseStatus(b[:i-1]); err != nil {
		return h, err
	}
	for fields := 0; ; fields++ {
		b = b[i+1:]
		i = bytes.IndexByte(b, '\n')
		if i == 1 {
			return h, nil
		}
		if fields == maxFields {
			return h, ErrHeadTooLarge
		}
		name, value, err := parseField(b[:i-1])
		if err != nil {
			return h, err
		}
		if err := h.field(name, value); err != nil {
			return h, err
		}
	}
}

// parseStatus parses a status line without CR LF.
func (h *head) parseStatus(line []byte) error {
	const form = "HTTP/1.x 200"
	if len(line) < len(form) || string(line[:7]) != "HTTP/1." || !isDigit(line[7]) || line[8] != ' ' {
		return malformed("it begins with %.40q", line)
	}
	code := line[9:12]
	if !isDigit(code[0]) || code[0] == '0' || !isDigit(code[1]) || !isDigit(code[2]) || (len(line) > len(form) && line[12] != ' ') {
		return malformed("the status in %.40q", line)
	}
	if !validValue(line[12:]) {
		return malformed("the reason in %.40q", line)
	}
	h.minor = int(line[7] - '0')
	h.status = int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
	return nil
}

// parseField parses the line of a field without CR LF.
func parseField(line []byte) (name, value []byte, err error) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, malformed("the field %.40q", line)
	}
	name, value = line[:i], trim(line[i+1:])
	for _, c := range name {
		if !tokenBytes[c] {
			return nil, nil, malformed("the name of the field %.40q", line)
		}
	}
	if !validValue(value) {
		return nil, nil, malformed("the value of the field %.40q", line)
	}
	return name, value, nil
}

// field stores the value of a field.
func (h *head) field(name, value []byte) error {
	switch len(name) {
	case len("Content-Length"):
		if !equalFold(name, "Content-Length") {
			return nil
		}
		n, err := parseLength(value)
		if err != nil {
			return err
		}
		if h.length >= 0 && h.length != n {
			return malformed("a Content-Length of %d and one of %d", h.length, n)
		}
		h.length = n
	case len("Transfer-Encoding"):
		if !equalFold(name, "Transfer-Encoding") {
			return nil
		}
		if h.chunked || !equalFold(value, "chunked") {
			return malformed("the Transfer-Encoding %.40q", value)
		}
		h.chunked = true
	case len("Connection"):
		if !equalFold(name, "Connection") {
			return nil
		}
		for more := true; more; {
			var option []byte
			option, value, more = bytes.Cut(value, []byte{','})
			option = trim(option)
			h.close = h.close || equalFold(option, "close")
			h.keepAlive = h.keepAlive || equalFold(option, "keep-alive")
		}
	}
	return nil
}

// framing is the way in which a body ends.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// body returns the framing of the body and its length, or -1 if unknown. keep reports whether the
// connection may be reused.
func (h *head) body() (f framing, length int64, keep bool, err error) {
	if h.chunked && h.length >= 0 {
		return 0, 0, false, malformed("both Content-Length and Transfer-Encoding")
	}
	if h.chunked && h.minor == 0 {
		return 0, 0, false, malformed("a Transfer-Encoding in HTTP/1.0")
	}
	keep = !h.close && (h.minor > 0 || h.keepAlive)
	switch {
	case h.status == 204 || h.status == 304 || h.status < 200:
		// There is no body, whatever the head contains. If the head announces a body, such a body
		// may still follow, so the connection is not reused.
		return byLength, 0, keep && !h.chunked && (h.length <= 0 || h.status == 304), nil
	case h.chunked:
		return byChunks, -1, keep, nil
	case h.length >= 0:
		return byLength, h.length, keep, nil
	}
	return byClose, -1, false, nil
}

// fieldOf returns the value of the first field with a name, or nil if there is none. parseHead must
// have accepted the head.
func fieldOf(head []byte, name string) []byte {
	for {
		i := bytes.IndexByte(head, '\n')
		if i < 0 {
			return nil
		}
		head = head[i+1:]
		if len(head) > len(name) && head[len(name)] == ':' && equalFold(head[:len(name)], name) {
			value, _, _ := bytes.Cut(head[len(name)+1:], []byte{'\r'})
			return trim(value)
		}
	}
}

// parseLength parses a Content-Length. It only accepts digits.
func parseLength(b []byte) (int64, error) {
	const most = 18 // the maximum number of digits that always fits
	n := int64(0)
	for _, c := range b {
		if !isDigit(c) {
			return 0, malformed("a Content-Length of %.40q", b)
		}
		n = n*10 + int64(c-'0')
	}
	if len(b) == 0 || len(b) > most {
		return 0, malformed("a Content-Length of %.40q", b)
	}
	return n, nil
}

// parseChunk parses the line before a chunk without CR LF. The line contains the chunk's size and
// possibly extensions, which are ignored.
func parseChunk(line []byte) (int64, error) {
	const most = 15 // the maximum number of digits that always fits
	size, extension, _ := bytes.Cut(line, []byte{';'})
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > most || !validValue(extension) {
		return 0, malformed("a chunk that begins with %.40q", line)
	}
	n := int64(0)
	for _, c := range size {
		switch low := c | 0x20; {
		case isDigit(c):
			n = n<<4 | int64(c-'0')
		case 'a' <= low && low <= 'f':
			n = n<<4 | int64(low-'a'+10)
		default:
			return 0, malformed("a chunk that begins with %.40q", line)
		}
	}
	return n, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// validValue reports whether b contains no control characters except tabs. In particular, CR, LF
// and NUL are not valid.
func validValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// equalFold is like bytes.EqualFold, for ASCII.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if c != s[i] && (c|0x20 != s[i]|0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// tokenBytes contains the bytes that are allowed in names of fields.
var tokenBytes = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()
