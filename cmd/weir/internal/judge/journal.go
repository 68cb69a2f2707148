package judge

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// AppendLine appends the line of a journal for h to buf. A line has six fields, separated by tabs.
func AppendLine(buf []byte, h Handling) []byte {
	buf = append(buf, h.Shard...)
	buf = append(buf, '\t')
	buf = strconv.AppendUint(buf, h.Epoch, 10)
	buf = append(buf, '\t')
	buf = append(buf, h.Sequence...)
	buf = append(buf, '\t')
	buf = append(buf, h.Key...)
	buf = append(buf, '\t')
	buf = strconv.AppendInt(buf, int64(h.Index), 10)
	buf = append(buf, '\t')
	buf = strconv.AppendInt(buf, h.At, 10)
	return append(buf, '\n')
}

// ParseLines parses the complete lines of a journal. rest is an incomplete line: it is still being
// written, or its worker was killed. An incomplete line does not count, because the handler has not
// returned.
func ParseLines(text []byte) (handled []Handling, rest []byte, err error) {
	for len(text) > 0 {
		line, after, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		h, err := parseLine(string(line))
		if err != nil {
			return handled, text, err
		}
		handled, text = append(handled, h), after
	}
	return handled, text, nil
}

func parseLine(line string) (Handling, error) {
	f := strings.Split(line, "\t")
	if len(f) != 6 {
		return Handling{}, fmt.Errorf("journal line %.200q has %d fields instead of 6", line, len(f))
	}
	h := Handling{Shard: f[0], Sequence: f[2], Key: f[3]}
	var errs [3]error
	h.Epoch, errs[0] = strconv.ParseUint(f[1], 10, 64)
	h.Index, errs[1] = strconv.Atoi(f[4])
	h.At, errs[2] = strconv.ParseInt(f[5], 10, 64)
	for _, err := range errs {
		if err != nil {
			return Handling{}, fmt.Errorf("journal line %.200q: %w", line, err)
		}
	}
	if h.Sequence == "" || strings.Trim(h.Sequence, "0123456789") != "" {
		return Handling{}, fmt.Errorf("journal line %.200q: the third field is not a sequence number", line)
	}
	return h, nil
}
