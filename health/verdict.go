package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict describes an application for people who have to act: its state, the cause with its
// evidence, what follows if nothing changes, and the next steps. All tools of weir show the same
// verdict. A Verdict is a plain value, and all its methods may be called concurrently.
type Verdict struct {
	// State is that of the worst unfinished shard, as in [Application].
	State State
	// Sentence states the result: the state, the worst shard and its lag, how long that has lasted,
	// and the numbers of other shards in each state but OK and Idle. It contains the last error of
	// the worst shard's owner, unless Evidence contains it.
	Sentence string
	// Since is when the state of the worst shard began, or zero if that is unknown. AtLeast reports
	// that it may have begun earlier.
	Since   time.Time
	AtLeast bool
	// Trend describes how the lag of the worst shard changed, such as "the lag grew by 2 min in 3
	// min". It is "" if that is unknown. Change is the change, negative if the lag fell, within the
	// time Over. Over is 0 if they are unknown.
	Trend        string
	Change, Over time.Duration

	// Cause is the first cause of the table of causes that explains the worst shard, or the first
	// cause that explains another shard. It is [NoCause] if none applies.
	Cause Cause
	// Evidence is a sentence about why Cause is named. For NoCause it says what would show the
	// cause, or it is "" if nothing has to be explained.
	Evidence string
	// Explains is the number of affected shards that Cause explains, and Affected the number of all
	// affected shards.
	Explains, Affected int
	// Also contains the other causes that apply, in the order of the table.
	Also []Cause

	// Left is the time until unhandled records leave the stream if nothing changes, 0 if some have
	// left it, or [Unknown].
	Left time.Duration
	// Drained is the time until all records are handled if the lags continue to fall at the same
	// rate, or [Unknown].
	Drained time.Duration
	// Steps are the next steps, at most three, the most useful first. It is nil if there is nothing
	// to do.
	Steps []Step
}

// Step is a next step.
type Step struct {
	Do string `json:"do"` // what to do, without a full stop
	// Command is a command line for it, or "". Commands of weir take the store from the environment
	// variable WEIR_STORE, and the destination of dead letters from WEIR_DEAD.
	Command string `json:"command,omitempty"`
}

// mostSteps is the maximum number of next steps, so that people read all of them.
const mostSteps = 3

// Conclude returns the verdict on an application. It neither changes nor keeps the facts.
func Conclude(f Facts) Verdict {
	c := conclusion{Facts: f}
	v := c.begin()
	causes := c.causes()
	for i, of := range causes {
		if of.worst {
			causes[0], causes[i] = of, causes[0]
			break
		}
	}
	if len(causes) > 0 {
		first := causes[0]
		v.Cause, v.Explains, v.Affected = first.cause, len(first.shards), len(c.affected)
		row := &causeRows[first.cause]
		v.Evidence, v.Steps = row.evidence(&c, first.shards), row.steps(&c, first.shards)
		for _, of := range causes[1:] {
			if first.implies(of) {
				continue
			}
			v.Also = append(v.Also, of.cause)
		}
		slices.Sort(v.Also)
	} else if v.needsCause(c.worst) {
		v.Evidence, v.Steps = c.unknown()
	}
	if c.quoted {
		v.Sentence = c.short
	}
	if v.State == CatchingUp {
		v.Steps = slices.Insert(v.Steps, 0, Step{"Wait, and watch the lag", c.weir("group lag")})
	}
	if v.State == RetentionNear && c.worst != nil && c.worst.fault != faultPosition {
		v.Steps = slices.Insert(v.Steps, 0, c.longerRetention())
	}
	v.Steps = v.Steps[:min(len(v.Steps), mostSteps)]
	return v
}

// conclusion contains the facts, and what follows from them.
type conclusion struct {
	Facts
	open     []*ShardFacts // the unfinished shards, the worst first
	affected []*ShardFacts // the open shards whose state needs an explanation
	worst    *ShardFacts   // nil without open shards
	hot      map[*ShardFacts]float64
	short    string // the sentence of the verdict without the last error of the worst shard
	quoted   bool   // the evidence contains that error
}

// begin fills in the conclusion. It returns the parts of the verdict that do not depend on causes.
func (c *conclusion) begin() Verdict {
	named := make([]Named, 0, len(c.Shards))
	shards := slices.Clone(c.Shards)
	for i := range shards {
		s := &shards[i]
		if s.fault = faultOf(s.Err); s.fault == faultDenied {
			s.refused = refusalOf(s.Err)
		}
		if c.HideErrors {
			s.Err, s.refused.resource = "", ""
		}
		named = append(named, s.Named)
		if !s.Finished {
			c.open = append(c.open, s)
		}
	}
	slices.SortFunc(c.open, func(a, b *ShardFacts) int { return Compare(a.Named, b.Named) })
	sum := Sum(named)
	v := Verdict{Left: Unknown, Drained: Unknown}
	if !c.StoreSilent.IsZero() {
		sum = sum.Unanswered(c.StoreSilent, len(shards) > 0)
		v.State, v.Sentence, v.Since = sum.State, sum.Sentence, c.StoreSilent
		c.affected = c.open
		return v
	}
	v.State, v.Sentence, c.short = sum.State, sum.Sentence, sum.Sentence
	if sum.Worst != nil {
		sum.Worst.Err = ""
		c.short = sum.sentence(len(c.open))
	}
	if len(c.open) == 0 {
		return v
	}
	if died := c.died(); v.State == OK && died != "" {
		v.Sentence += "; " + died + ", and " + plural(c.Workers, "worker holds",
			"workers hold") + " " + plural(c.Leases, "shard", "shards")
	}
	c.worst = c.open[0]
	v.Since, v.AtLeast = c.worst.Since, c.worst.AtLeast
	v.Trend, v.Change, v.Over = c.worst.trendText(), c.worst.Change, c.worst.Over
	for _, s := range c.open {
		if s.State >= Behind || v.State < Behind && v.State != OK && s.State == v.State {
			c.affected = append(c.affected, s)
		}
		if left := s.leaves(); left >= 0 && (v.Left < 0 || left < v.Left) {
			v.Left = left
		}
	}
	v.Drained = drained(c.affected)
	c.hot = hotShards(c.open)
	return v
}

// trendText returns how the lag changed, or "".
func (v Shard) trendText() string {
	switch {
	case v.Over <= 0:
		return ""
	case v.Reason == LagGrows:
		return "the lag grew by " + rough(v.Change) + " in " + rough(v.Over)
	case v.Reason == LagFalls:
		return "the lag fell by " + rough(-v.Change) + " in " + rough(v.Over)
	}
	return "the lag changed by " + rough(v.Change.Abs()) + " in " + rough(v.Over)
}

// leaves returns the time until unhandled records leave the stream, or Unknown. Shards whose lag
// does not grow lose no records.
func (v Shard) leaves() time.Duration {
	switch v.State {
	case FallingBehind:
		if v.Left > 0 && v.Change > 0 && v.Over > 0 {
			return time.Duration(min(float64(v.Left)*float64(v.Over)/float64(v.Change),
				float64(maxLag/2)))
		}
	case Unread, Stalled, RetentionNear:
	default:
		return Unknown
	}
	return v.Left
}

// drained returns the time until all affected shards have caught up. It returns Unknown if one of
// them does not catch up.
func drained(affected []*ShardFacts) time.Duration {
	most := Unknown
	for _, s := range affected {
		if s.State != CatchingUp || s.Caught < 0 {
			return Unknown
		}
		most = max(most, s.Caught)
	}
	return most
}

// applies is a cause that applies, with the shards that it explains.
type applies struct {
	cause  Cause
	shards []*ShardFacts
	worst  bool // it explains the worst shard
}

// causes returns the causes that apply, in the order of the table.
func (c *conclusion) causes() (all []applies) {
	for i := range causeRows {
		of := applies{cause: Cause(i)} //nolint:gosec // there are few
		if of.cause == NoCause {
			continue
		}
		for _, s := range c.affected {
			if causeRows[i].explains(c, s) {
				of.shards = append(of.shards, s)
				of.worst = of.worst || s == c.worst
			}
		}
		if len(of.shards) > 0 || of.cause == CauseStoreSilent && !c.StoreSilent.IsZero() {
			all = append(all, of)
		}
	}
	return all
}

// implies reports whether another cause follows from this one for all shards that it explains, so
// that it says nothing new.
func (a applies) implies(other applies) bool {
	follows := a.cause == CauseHandlerHangs && other.cause == CauseHandlerBusy ||
		a.cause == CausePosition && other.cause == CauseExpired
	return follows && !slices.ContainsFunc(other.shards, func(s *ShardFacts) bool {
		return !slices.Contains(a.shards, s)
	})
}

// needsCause reports whether people need to know why the worst shard is in its state.
func (v *Verdict) needsCause(worst *ShardFacts) bool {
	switch v.State {
	case OK, Idle, NotKnown, CatchingUp, GoingBack:
		return false
	case Behind:
		return worst.Reason != BehindBriefly
	}
	return true
}

// unknown returns what would show the cause, and the steps that lead to it.
func (c *conclusion) unknown() (evidence string, steps []Step) {
	r := c.worst.Recent
	if r.Minutes == 0 {
		evidence = fmt.Sprintf("Workers report once a minute how busy they are, and no report "+
			"about %s "+
			"of the last %d min is known", c.worst.Name, RecentMinutes)
	} else {
		evidence = fmt.Sprintf("In the last %d min the handler of %s was busy %d %% of the time, "+
			"and reading "+
			"was throttled %d %% of the time. The log of the worker may show the cause",
			r.Minutes, c.worst.Name, r.Busy, r.Throttled)
	}
	remedy := c.worst.Reason.Remedy()
	if c.worst.State == RetentionNear {
		remedy = "" // Conclude adds a step with the command for it
	}
	if remedy != "" && !strings.Contains(remedy, "weir ") {
		steps = append(steps, Step{strings.ToUpper(remedy[:1]) + remedy[1:], ""})
	}
	return evidence, append(steps, Step{"Look for problems of workers and streams",
		c.weir("doctor")})
}

// Because returns the cause and its evidence in sentences, or "" if nothing has to be explained.
func (v Verdict) Because() string {
	switch {
	case v.Cause == NoCause && v.Evidence == "":
		return ""
	case v.Cause == NoCause:
		return "not known. " + fullStop(v.Evidence)
	}
	text := v.Cause.String()
	if v.Affected > 1 {
		text += fmt.Sprintf(" (%d of %d affected shards)", v.Explains, v.Affected)
	}
	text += ". " + fullStop(v.Evidence)
	if len(v.Also) > 0 {
		words := make([]string, len(v.Also))
		for i, also := range v.Also {
			words[i] = also.String()
		}
		text += " Also: " + strings.Join(words, "; ") + "."
	}
	return text
}

// fullStop ends a sentence, which may end with the text of an error.
func fullStop(sentence string) string {
	if strings.HasSuffix(sentence, "…") {
		return sentence
	}
	return strings.TrimRight(sentence, ".") + "."
}

// Outlook returns in a sentence what follows if nothing changes, or "" if that is unknown.
func (v Verdict) Outlook() string {
	var parts []string
	if v.Drained >= 0 {
		parts = append(parts, "all records are handled in about "+rough(v.Drained)+" at this rate")
	}
	switch {
	case v.Left == 0:
		parts = append(parts, "unhandled records have left the stream")
	case v.Left > 0:
		parts = append(parts, "unhandled records leave the stream in about "+rough(v.Left))
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Text returns the verdict as lines of at most the given number of columns, where words and
// commands permit that. Each line ends with a line feed. A command is never broken, so that it can
// be copied.
func (v Verdict) Text(columns int) string {
	var b strings.Builder
	b.WriteString(wrap(fullStop(v.Sentence), "  ", columns))
	if because := v.Because(); because != "" {
		b.WriteString(wrap("Cause: "+because, "  ", columns))
	}
	if outlook := v.Outlook(); outlook != "" {
		b.WriteString(wrap("Outlook: "+outlook, "  ", columns))
	}
	for i, s := range v.Steps {
		if i == 0 {
			b.WriteString("Next steps:\n")
		}
		end := "."
		if s.Command != "" {
			end = ":"
		}
		b.WriteString(wrap(fmt.Sprintf("  %d. %s%s", i+1, s.Do, end), "     ", columns))
		if s.Command != "" {
			b.WriteString("     " + s.Command + "\n")
		}
	}
	return b.String()
}

// wrap breaks a text into lines. The lines after the first begin with indent.
func wrap(text, indent string, columns int) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	line := text[:len(text)-len(strings.TrimLeft(text, " "))] + words[0]
	var b strings.Builder
	for _, word := range words[1:] {
		if len([]rune(line))+1+len([]rune(word)) > columns {
			b.WriteString(line + "\n")
			line = indent + word
			continue
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// verdictJSON is the form of a Verdict in JSON.
type verdictJSON struct {
	State    State     `json:"state"`
	Sentence string    `json:"sentence"`
	Since    time.Time `json:"since,omitzero"`
	AtLeast  bool      `json:"at_least,omitzero"`
	Trend    string    `json:"trend,omitzero"`
	Change   *int64    `json:"lag_change_ms,omitempty"`
	Over     *int64    `json:"lag_change_over_ms,omitempty"`
	Cause    Cause     `json:"cause,omitzero"`
	Words    string    `json:"cause_words,omitzero"`
	Evidence string    `json:"evidence,omitzero"`
	Explains int       `json:"explains,omitzero"`
	Affected int       `json:"affected,omitzero"`
	Also     []Cause   `json:"also,omitempty"`
	Left     *int64    `json:"left_ms,omitempty"`
	Drained  *int64    `json:"drained_ms,omitempty"`
	Steps    []Step    `json:"steps"`
}

// MarshalJSON returns the verdict as an object. Durations are in milliseconds, and unknown fields
// are absent.
func (v Verdict) MarshalJSON() ([]byte, error) {
	known := func(d time.Duration, is bool) *int64 {
		if !is {
			return nil
		}
		ms := d.Milliseconds()
		return &ms
	}
	return json.Marshal(verdictJSON{
		v.State, v.Sentence, v.Since.UTC().Truncate(time.Second), v.AtLeast, v.Trend,
		known(v.Change, v.Over > 0),
		known(v.Over, v.Over > 0), v.Cause, v.Cause.String(), v.Evidence, v.Explains, v.Affected,
		v.Also,
		known(v.Left, v.Left >= 0), known(v.Drained, v.Drained >= 0), append([]Step{}, v.Steps...),
	})
}

// UnmarshalJSON parses the result of MarshalJSON.
func (v *Verdict) UnmarshalJSON(text []byte) error {
	var j verdictJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	span := func(ms *int64, unknown time.Duration) time.Duration {
		if ms == nil {
			return unknown
		}
		return time.Duration(*ms) * time.Millisecond
	}
	*v = Verdict{
		State: j.State, Sentence: j.Sentence, Since: j.Since, AtLeast: j.AtLeast, Trend: j.Trend,
		Change: span(j.Change, 0), Over: span(j.Over, 0), Cause: j.Cause, Evidence: j.Evidence,
		Explains: j.Explains, Affected: j.Affected, Also: j.Also,
		Left: span(j.Left, Unknown), Drained: span(j.Drained, Unknown), Steps: j.Steps,
	}
	return nil
}
