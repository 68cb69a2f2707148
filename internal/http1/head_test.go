package http1

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// readOne reads a head in the same way as a connection.
func readOne(text string) (head, error) {
	end, _, err := headEnd([]byte(text), 0)
	if err != nil {
		return head{}, err
	}
	if end != len(text) {
		return head{}, fmt.Errorf("the head has %d of %d bytes", end, len(text))
	}
	return parseHead([]byte(text))
}

func TestHeads(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name, text string
		framing    framing
		length     int64
		keep       bool
		err        error
	}{
		{"a length", ok + "Content-Length: 12\r\n\r\n", byLength, 12, true, nil},
		{"in any case, with blanks", ok + "cOnTeNt-LeNgTh: \t 12\t\r\n\r\n", byLength, 12, true, nil},
		{"no blanks", ok + "Content-Length:12\r\n\r\n", byLength, 12, true, nil},
		{"a length of nothing", ok + "Content-Length: 0\r\n\r\n", byLength, 0, true, nil},
		{"the same length twice", ok + "Content-Length: 12\r\nContent-Length: 012\r\n\r\n", byLength, 12, true, nil},
		{"two lengths", ok + "Content-Length: 12\r\nContent-Length: 13\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a list of lengths", ok + "Content-Length: 12, 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a length with a sign", ok + "Content-Length: +12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a length below zero", ok + "Content-Length: -12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a length in hex", ok + "Content-Length: 0x12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"an empty length", ok + "Content-Length:\r\n\r\n", 0, 0, false, ErrMalformed},
		{"an absurd length", ok + "Content-Length: 18446744073709551617\r\n\r\n", 0, 0, false, ErrMalformed},
		{"chunks", ok + "Transfer-Encoding: Chunked\r\n\r\n", byChunks, -1, true, nil},
		{"chunks twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, false, ErrMalformed},
		{"chunks and a length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a length and chunks", ok + "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, false, ErrMalformed},
		{"another encoding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, 0, false, ErrMalformed},
		{"almost chunks", ok + "Transfer-Encoding: xchunked\r\n\r\n", 0, 0, false, ErrMalformed},
		{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, false, ErrMalformed},
		{"neither", ok + "\r\n", byClose, -1, false, nil},
		{"it closes", ok + "Content-Length: 12\r\nConnection: close\r\n\r\n", byLength, 12, false, nil},
		{"it closes among others", ok + "Connection: x, ,CLOSE ,keep-alive\r\nContent-Length: 12\r\n\r\n", byLength, 12, false, nil},
		{"a similar word does not close it", ok + "Connection: closed\r\nContent-Length: 12\r\n\r\n", byLength, 12, true, nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 12\r\n\r\n", byLength, 12, false, nil},
		{"HTTP/1.0 that stays", "HTTP/1.0 200 OK\r\nContent-Length: 12\r\nConnection: Keep-Alive\r\n\r\n", byLength, 12, true, nil},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", byLength, 0, true, nil},
		{"no content with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", byLength, 0, false, nil},
		{"no content in chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", byLength, 0, false, nil},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", byLength, 0, true, nil},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 12\r\n\r\n", byLength, 12, true, nil},
		{"an empty reason", "HTTP/1.1 200 \r\nContent-Length: 12\r\n\r\n", byLength, 12, true, nil},
		{"not HTTP", "HTCPCP/1.1 418 teapot\r\n\r\n", 0, 0, false, ErrMalformed},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"an odd version", "HTTP/1.x 200 OK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a short status", "HTTP/1.1 20\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a long status", "HTTP/1.1 2000\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a status below 100", "HTTP/1.1 099 OK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a status with a sign", "HTTP/1.1 +20 OK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"two blanks", "HTTP/1.1  200 OK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"an empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", 0, 0, false, errAny},
		{"a bare LF", "HTTP/1.1 200 OK\nContent-Length: 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a bare LF at the end", ok + "Content-Length: 12\r\n\n", 0, 0, false, ErrMalformed},
		{"a bare CR in a value", ok + "X: a\rContent-Length: 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"two CR", ok + "X: a\r\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a bare CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a NUL", ok + "X: a\x00\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a continued line", ok + "X: a\r\n Content-Length: 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"a blank before the colon", ok + "Content-Length : 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"no name", ok + ": 12\r\n\r\n", 0, 0, false, ErrMalformed},
		{"no colon", ok + "Content-Length\r\n\r\n", 0, 0, false, ErrMalformed},
		{"as many fields as there may be", ok + strings.Repeat("A: b\r\n", maxFields) + "\r\n", byClose, -1, false, nil},
		{"too many", ok + strings.Repeat("A: b\r\n", maxFields+1) + "\r\n", 0, 0, false, ErrHeadTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := readOne(c.text)
			var f framing
			var length int64
			var keep bool
			if err == nil {
				f, length, keep, err = h.body()
			}
			if errors.Is(c.err, errAny) && err != nil {
				return
			}
			if !errors.Is(err, c.err) {
				t.Fatalf("the error is %v, want %v", err, c.err)
			}
			if c.err == nil && (f != c.framing || length != c.length || keep != c.keep) {
				t.Errorf("framing %d, length %d, kept %v; want %d, %d, %v", f, length, keep, c.framing, c.length, c.keep)
			}
		})
	}
}

var errAny = errors.New("any error")

func TestFields(t *testing.T) {
	t.Parallel()
	b := []byte("HTTP/1.1 200 A: b\r\nContent-Type:  x/y \r\nEmpty:\r\nA: first\r\na: second\r\nLong-Name-A: c\r\n\r\n")
	if _, err := parseHead(b); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"content-type": "x/y", "CONTENT-TYPE": "x/y", "A": "first", "a": "first", "Empty": "", "Long-Name-A": "c", "Name-A": "absent", "B": "absent", "Content-Typ": "absent",
	} {
		got := "absent"
		if v := fieldOf(b, name); v != nil {
			got = string(v)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestEqualFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"a", "A", true}, {"Z", "z", true}, {"a-B", "A-b", true}, {"a", "ab", false},
		{"[", "{", false}, {"@", "`", false}, {"-", "\r", false}, {"\x0d", "-", false}, {"_", "\x7f", false}, {"k", "\u212a", false},
	} {
		if got := equalFold([]byte(c.a), c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

func TestChunkLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int64{
		"0": 0, "a": 10, "Ff": 255, "0010": 16, "5;x=y": 5, "5 \t": 5, "5 ; x": 5, "fffffffffffffff": 1<<60 - 1,
		"": -1, ";": -1, " 5": -1, "+5": -1, "-5": -1, "0x5": -1, "5_0": -1, "5 5": -1, "g": -1, "5;\r": -1, "5\r": -1, "ffffffffffffffff": -1,
		"0000000000000005": -1,
	} {
		got, err := parseChunk([]byte(line))
		if want < 0 != errors.Is(err, ErrMalformed) || (err == nil && got != want) {
			t.Errorf("%q is %d, %v; want %d", line, got, err, want)
		}
	}
}
