// Package multilang implements the command "weir multilang". It runs programs that were written for
// Amazon's MultiLangDaemon: it reads the daemon's properties file, starts one process of the
// program for each shard, and speaks the daemon's protocol with it.
package multilang

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// entry is a property in a file.
type entry struct {
	key, value string
	line       int // counted from 1
}

// parse reads the text of a properties file of Java. If a key occurs twice, the last entry counts,
// and takes the place of the first. Blanks at the end of a value are removed, unlike in Java,
// because no property needs them.
func parse(text []byte) []entry {
	var all []entry
	place := map[string]int{}
	rest := strings.ReplaceAll(asUTF8(text), "\r\n", "\n")
	number := 0
	for rest != "" {
		var logical strings.Builder
		first := number + 1
		for more := true; more && rest != ""; {
			line := rest
			if i := strings.IndexAny(rest, "\n\r"); i >= 0 {
				line, rest = rest[:i], rest[i+1:]
			} else {
				rest = ""
			}
			number++
			line = strings.TrimLeft(line, " \t\f")
			if logical.Len() == 0 && (line == "" || line[0] == '#' || line[0] == '!') {
				break
			}
			before := strings.TrimRight(line, `\`)
			if more = (len(line)-len(before))%2 == 1; more {
				line = line[:len(line)-1]
			}
			logical.WriteString(line)
		}
		if logical.Len() == 0 {
			continue
		}
		key, value := divide(logical.String())
		e := entry{unescape(key), strings.TrimRight(unescape(value), " \t\f"), first}
		if i, twice := place[e.key]; twice {
			all[i] = e
			continue
		}
		place[e.key] = len(all)
		all = append(all, e)
	}
	return all
}

// asUTF8 returns the text, which is read as Latin-1 if it is not UTF-8.
func asUTF8(text []byte) string {
	if utf8.Valid(text) {
		return strings.TrimPrefix(string(text), "\ufeff")
	}
	var b strings.Builder
	for _, c := range text {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// divide splits a line at the first separator that is not escaped: =, : or a blank.
func divide(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	value = strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return line[:end], value
}

// unescape replaces the escapes of a properties file. A backslash before any other character is
// removed, as in Java.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			if s[i] != '\\' {
				b.WriteByte(s[i])
			}
			continue
		}
		i++
		switch c := s[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					b.WriteRune(rune(n))
					i += 4
					continue
				}
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
