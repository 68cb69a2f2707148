package deadletter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/seen"
)

// File returns a [Box] in a file. The file has lines of JSON for dead letters, and lines for their
// marks. Each write appends whole lines, which are on disk before Put or Mark returns. The
// processes of one machine can therefore share the file. The file is created on first use, and only
// its owner can read and write it. If a crash cuts a line short, the other lines stay readable.
//
// The box keeps the state of each marked dead letter of the file in memory, in about 200 bytes.
// Dead letters without a mark need no memory.
func File(path string) Box {
	return &file{path: path, by: strconv.FormatUint(rand.Uint64(), 36)}
}

type file struct {
	path string
	by   string // distinguishes this box from others on the same file

	adding  sync.Mutex // held while lines are appended
	marking sync.Mutex // held while marks are read or made, and before adding
	marks   marks
}

// standing is the state of a dead letter, and the box that set it. The zero standing belongs to a
// dead letter that was not marked since it was put.
type standing struct {
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`
}

func (s standing) same(as standing) bool {
	return s.State == as.State && s.By == as.By && s.Since.Equal(as.Since)
}

// mark is a line that marks earlier dead letters.
type mark struct {
	Version int `json:"weir_letter"`
	standing
	IDs []string `json:"ids"`
	// From is the state that the dead letters must have, otherwise the mark does not count. All
	// processes see the lines in the same order. If two marks are made from the same state, the
	// first one counts for all processes.
	From *standing `json:"from,omitempty"`
}

func (f *file) Put(ctx context.Context, letters []Letter) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var lines bytes.Buffer
	to := json.NewEncoder(&lines)
	for i := range letters {
		if err := to.Encode(&letters[i]); err != nil {
			return fmt.Errorf("weir: dead letter %s: %w", letters[i].ID, err)
		}
	}
	return f.add(lines.Bytes())
}

func (f *file) Mark(ctx context.Context, to State, ids ...string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch to {
	case Kept, Begun, Done, Dropped:
	default:
		return fmt.Errorf("weir: %q is not a valid state of a dead letter", to)
	}
	f.marking.Lock()
	defer f.marking.Unlock()
	var lines bytes.Buffer
	write, now := json.NewEncoder(&lines), standing{to, time.Now().UTC(), f.by}
	for from, some := range f.byStanding(ids) {
		for some := range slices.Chunk(some, idsOfLine) {
			if err := write.Encode(mark{Version, now, some, from}); err != nil {
				return err
			}
		}
	}
	if err := f.add(lines.Bytes()); err != nil {
		return err
	}
	marked, err := f.follow(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if !marked[seen.KeyOf(id)] {
			errs = append(errs, fmt.Errorf("%w: %s", ErrChanged, id))
		}
	}
	return errors.Join(errs...)
}

// byStanding groups dead letters by the state in which this box has seen them. For the dead letters
// that the box has not seen, it yields nil as the state. The caller holds marking.
func (f *file) byStanding(ids []string) iter.Seq2[*standing, []string] {
	return func(yield func(*standing, []string) bool) {
		var unknown []string
		known := map[standing][]string{}
		for _, id := range ids {
			if from, ok := f.marks.from(f.by, seen.KeyOf(id)); ok {
				known[from] = append(known[from], id)
			} else {
				unknown = append(unknown, id)
			}
		}
		if len(unknown) > 0 && !yield(nil, unknown) {
			return
		}
		for from, some := range known {
			if !yield(&from, some) {
				return
			}
		}
	}
}

// idsOfLine is the maximum number of IDs in a mark. The line then stays far below [mostLine].
const idsOfLine = 1000

// add appends lines.
func (f *file) add(lines []byte) (err error) {
	f.adding.Lock()
	defer f.adding.Unlock()
	to, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("weir: dead letters: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	i, err := to.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("weir: dead letters: %w", err)
	case i.Size() == 0: // the file may be new
		if err := syncFolder(filepath.Dir(f.path)); err != nil {
			return fmt.Errorf("weir: dead letters: %w", err)
		}
	default:
		last := make([]byte, 1)
		if _, err := to.ReadAt(last, i.Size()-1); err == nil && last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...) // the previous line was cut short
		}
	}
	if _, err := to.Write(lines); err != nil {
		return fmt.Errorf("weir: dead letters: %w", err)
	}
	if err := to.Sync(); err != nil {
		return fmt.Errorf("weir: dead letters: %w", err)
	}
	return nil
}

// syncFolder makes a file's entry in its folder durable. Windows has no such call and does not need
// it.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// mostLine is the maximum size of a line. It is enough for a record of 10 MiB in base64 and its
// description.
const mostLine = 16 << 20

func (f *file) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last, err := f.index(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			return // no record was dead-lettered yet
		}
		stopped := false
		if err == nil {
			err = f.lines(ctx, func(n int, line []byte) bool {
				i, some, err := parse(line)
				switch key := seen.KeyOf(i.ID); {
				case err != nil:
					stopped = !yield(Item{}, fmt.Errorf("weir: %s, line %d: %w", f.path, n, err))
				case some && last[key] <= n: // later versions of the dead letter were appended
					i.State = Kept
					if s := f.see(key); s.State != "" && s.State != Kept {
						i.State, i.Since = s.State, s.Since
					}
					stopped = !yield(i, nil)
				}
				return !stopped
			})
		}
		if err != nil && !stopped {
			yield(Item{}, err)
		}
	}
}

// parse parses a line. some is false if the line is a mark.
func parse(line []byte) (i Item, some bool, err error) {
	var is struct {
		Version int `json:"weir_letter"`
		IDs     []string
	}
	if json.Unmarshal(line, &is) == nil && is.Version == Version && is.IDs != nil {
		return i, false, nil
	}
	if i.Letter, err = Parse(line); err != nil {
		return Item{}, false, fmt.Errorf("no letter: %w", err)
	}
	return i, true, nil
}

// lines calls line with each line that is not blank, until line returns false.
func (f *file) lines(ctx context.Context, line func(n int, line []byte) bool) error {
	from, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("weir: dead letters: %w", err)
	}
	defer func() { _ = from.Close() }() // the file was only read
	return f.each(ctx, from, func(n int, text []byte) bool {
		text = bytes.TrimSpace(text)
		return len(text) == 0 || line(n, text)
	})
}

// each calls line with each line of from, including its line end, until line returns false.
func (f *file) each(ctx context.Context, from io.Reader, line func(n int, text []byte) bool) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var all []byte
	for n := 1; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part, err := r.ReadSlice('\n')
		if len(all)+len(part) > mostLine {
			return fmt.Errorf("weir: dead letters: %s, line %d: longer than %d MiB", f.path, n, mostLine>>20)
		}
		all = append(all, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(all) > 0 && !line(n, all) {
			return nil
		}
		all = all[:0]
		n++
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("weir: dead letters: %w", err)
		}
	}
}
