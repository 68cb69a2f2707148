package verdict

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A journal consists of lines with fields separated by tabs. The first field is the kind of the
// line. The comments list the other fields.
const (
	handlingLine = "record" // key number put shard sequence epoch start end
	callLine     = "call"   // shard epoch start end ok|failed
	saveLine     = "saved"  // shard sequence epoch start end
)

// AppendHandling appends the line for a handled record. The sequence number is decimal text and
// need not be parsed.
func AppendHandling(b []byte, p Put, shard, sequence string, epoch uint64, start, end int64) []byte {
	return fmt.Appendf(b, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\n", handlingLine, p.Key, p.Number, p.At, shard, sequence, epoch, start, end)
}

// AppendCall appends the line for a finished call.
func AppendCall(b []byte, c Call) []byte {
	how := "ok"
	if c.Failed {
		how = "failed"
	}
	return fmt.Appendf(b, "%s\t%s\t%d\t%d\t%d\t%s\n", callLine, c.Shard, c.Epoch, c.Start, c.End, how)
}

// AppendSave appends the line for a confirmed checkpoint.
func AppendSave(b []byte, shard, sequence string, epoch uint64, start, end int64) []byte {
	return fmt.Appendf(b, "%s\t%s\t%s\t%d\t%d\t%d\n", saveLine, shard, sequence, epoch, start, end)
}

// AppendPut appends the line for a record to the producer's list.
func AppendPut(b []byte, p Put) []byte { return fmt.Appendf(b, "%s\t%d\t%d\n", p.Key, p.Number, p.At) }

// Add parses complete lines and returns the rest, which is an incomplete line. If the process was
// killed, the line may stay incomplete forever. The handler had not returned then, so the line does
// not count.
func (j *Journal) Add(text []byte) (rest []byte, err error) {
	return lines(text, func(f *fields) {
		switch f.text() {
		case handlingLine:
			h := Handling{Put: f.put(), Shard: f.text(), Sequence: f.sequence(), Epoch: f.epoch(), Start: f.number(), End: f.number()}
			j.Handlings = append(j.Handlings, h)
		case callLine:
			c := Call{Shard: f.text(), Epoch: f.epoch(), Start: f.number(), End: f.number()}
			how := f.text()
			c.Failed = how == "failed"
			if how != "ok" && !c.Failed {
				f.wrong("neither ok nor failed")
			}
			j.Calls = append(j.Calls, c)
		case saveLine:
			j.Saves = append(j.Saves, Save{Shard: f.text(), Sequence: f.sequence(), Epoch: f.epoch(), Start: f.number(), End: f.number()})
		default:
			f.wrong("of an unknown kind")
		}
	})
}

// ParsePuts parses the producer's list.
func ParsePuts(text []byte) (puts []Put, err error) {
	_, err = lines(text, func(f *fields) { puts = append(puts, f.put()) })
	return puts, err
}

func lines(text []byte, each func(*fields)) (rest []byte, err error) {
	for {
		line, after, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return text, nil
		}
		f := &fields{line: string(line), left: strings.Split(string(line), "\t")}
		each(f)
		if len(f.left) > 0 {
			f.wrong("longer than it should be")
		}
		if f.err != nil {
			return text, f.err
		}
		text = after
	}
}

// fields contains the remaining fields of a line, and the first error.
type fields struct {
	line string
	left []string
	err  error
}

func (f *fields) wrong(what string) {
	if f.err == nil {
		f.err = fmt.Errorf("the line %.200q is %s", f.line, what)
	}
}

func (f *fields) text() string {
	if len(f.left) == 0 {
		f.wrong("too short")
		return ""
	}
	s := f.left[0]
	f.left = f.left[1:]
	return s
}

func (f *fields) number() int64 {
	n, err := strconv.ParseInt(f.text(), 10, 64)
	if err != nil {
		f.wrong("without a number where one belongs")
	}
	return n
}

func (f *fields) epoch() uint64 {
	n := f.number()
	if n < 0 {
		f.wrong("with a negative epoch")
	}
	return uint64(n)
}

func (f *fields) put() Put { return Put{Key: f.text(), Number: int(f.number()), At: f.number()} }

func (f *fields) sequence() *big.Int {
	const most = 129 // number of digits
	s := f.text()
	n, ok := new(big.Int), false
	if len(s) > 0 && len(s) <= most && strings.Trim(s, "0123456789") == "" {
		_, ok = n.SetString(s, 10)
	}
	if !ok {
		f.wrong("without a sequence number where one belongs")
	}
	return n
}
