package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Span is the value of a flag that sets a duration.
type Span struct {
	To    *time.Duration
	Zero  bool // the flag accepts 0
	given bool
}

func (s *Span) Type() string { return "duration" }

func (s *Span) String() string {
	if s.To == nil || *s.To == 0 && !s.given {
		return ""
	}
	return s.To.String()
}

func (s *Span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d == 0 && !s.Zero { // package weir would use its default for 0; it refuses other invalid values itself
		return fmt.Errorf("%.40s: want more than 0", text)
	}
	*s.To, s.given = d, true
	return nil
}

// Number is the value of a flag that sets a number from Low to High.
type Number[T int | float64] struct {
	To        *T
	Parse     func(string) (T, error)
	Low, High T
	Want      string
	given     bool
}

func (n *Number[T]) Type() string { return "number" }

func (n *Number[T]) String() string {
	if n.To == nil || *n.To == 0 && !n.given {
		return ""
	}
	return fmt.Sprint(*n.To)
}

func (n *Number[T]) Set(text string) error {
	v, err := n.Parse(text)
	if err != nil {
		return fmt.Errorf("%.140q: want %s", text, n.Want)
	}
	if !(v >= n.Low && v <= n.High) { // also refuses NaN
		return fmt.Errorf("%.140s: want %s", text, n.Want)
	}
	*n.To, n.given = v, true
	return nil
}

func ParseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// ParseSize parses a number of bytes, for example 512MiB.
func ParseSize(s string) (int, error) {
	unit := 1
	for suffix, of := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, found := strings.CutSuffix(s, suffix); found {
			s, unit = rest, of
			break
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err == nil && (n > math.MaxInt/unit || n < 0) {
		err = strconv.ErrRange
	}
	return n * unit, err
}

// Choice is one of the words that a flag accepts, with its meaning.
type Choice[T comparable] struct {
	word  string
	value T
	text  string
}

// Word returns a Choice. A shell shows text when it offers the word.
func Word[T comparable](word string, value T, text string) Choice[T] {
	return Choice[T]{word, value, text}
}

// Choose adds a flag that accepts one of several words. The first word is the default.
func Choose[T comparable](cmd *cobra.Command, name string, to *T, text string, of ...Choice[T]) {
	f := OneOf(to, of...)
	cmd.Flags().Var(f, name, text)
	MustComplete(cmd, name, f.Completions()...)
}

// Chosen is the value of a flag that accepts one of several words.
type Chosen[T comparable] struct {
	to *T
	of []Choice[T]
}

// OneOf returns a flag value that sets *to according to a word. The first word is the default.
func OneOf[T comparable](to *T, of ...Choice[T]) *Chosen[T] { return &Chosen[T]{to, of} }

// Completions returns the words and their explanations.
func (c *Chosen[T]) Completions() []cobra.Completion {
	var complete []cobra.Completion
	for _, o := range c.of {
		complete = append(complete, o.word+"\t"+o.text)
	}
	return complete
}

func (c *Chosen[T]) words(between string) string {
	var words []string
	for _, o := range c.of {
		words = append(words, o.word)
	}
	return strings.Join(words, between)
}

// Type returns the words for the help. If they are too long, it returns a placeholder.
func (c *Chosen[T]) Type() string {
	if words := c.words("|"); len(words) <= len("fail|oldest|latest") {
		return words
	}
	return "MODE"
}

// list joins the words for a sentence.
func (c *Chosen[T]) list() string {
	words := strings.Split(c.words(" "), " ")
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (c *Chosen[T]) String() string {
	for _, o := range c.of {
		if o.value == *c.to {
			return o.word
		}
	}
	return ""
}

func (c *Chosen[T]) Set(s string) error {
	for _, o := range c.of {
		if o.word == s {
			*c.to = o.value
			return nil
		}
	}
	return fmt.Errorf("%.140q: use %s", s, c.list())
}

// TagsFlag is the value of the flag --tag KEY=VALUE, which can be repeated.
type TagsFlag struct{ To *map[string]string }

func (f *TagsFlag) Type() string { return "KEY=VALUE" }

func (f *TagsFlag) String() string {
	if f.To == nil {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(*f.To)) {
		all = append(all, key+"="+(*f.To)[key])
	}
	return strings.Join(all, ",")
}

func (f *TagsFlag) Set(s string) error {
	key, value, found := strings.Cut(s, "=")
	if !found || key == "" {
		return fmt.Errorf("%.140q: want KEY=VALUE", s)
	}
	if _, twice := (*f.To)[key]; twice {
		return fmt.Errorf("%.140q: the tag %.140s is given twice", s, key)
	}
	if *f.To == nil {
		*f.To = map[string]string{}
	}
	(*f.To)[key] = value
	return nil
}
