package answers

// Purse is a [codec.Memory] of limited size. Left is free, Used is taken, and Most is the highest
// value of Used so far.
type Purse struct{ Left, Most, Used int }

func (m *Purse) TryTake(least, most int) int {
	n := min(most, m.Left)
	if n < least {
		return 0
	}
	m.take(n)
	return n
}

func (m *Purse) take(n int) {
	m.Left, m.Used = m.Left-n, m.Used+n
	m.Most = max(m.Most, m.Used)
}

func (m *Purse) TakeExcess(n int) { m.take(n) }
func (m *Purse) Give(n int)       { m.take(-n); m.Most = max(m.Most, m.Used) }
