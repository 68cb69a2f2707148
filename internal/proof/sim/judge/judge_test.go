package judge

import (
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// court is a judge for a parent shard with two records and its child with one. One record of the
// parent has the key "other". The two other records have the key "k".
type court struct {
	*Judge
	now time.Time
}

func open() *court {
	c := &court{New(), start}
	c.Born("parent")
	c.Born("child", "parent")
	c.Put(ID{"k", 1}, "parent", start)
	c.Put(ID{"other", 1}, "parent", start)
	c.Put(ID{"k", 2}, "child", start)
	return c
}

var (
	one = Worker{"one", 1}
	two = Worker{"two", 1}
	yes = func() bool { return true }
	no  = func() bool { return false }
)

func (c *court) begins(w Worker, shard string, epoch uint64, alive func() bool, ids ...ID) *Batch {
	b := &Batch{Worker: w, Shard: shard, Epoch: epoch, IDs: ids, Alive: alive}
	c.Begin(b, c.now)
	return b
}

// handles passes a batch without faults to the judge.
func (c *court) handles(w Worker, shard string, epoch uint64, ids ...ID) {
	b := c.begins(w, shard, epoch, yes, ids...)
	c.now = c.now.Add(time.Second)
	c.Done(b, len(ids), c.now)
	c.Acked(b, len(ids))
	c.Ended(b)
}

// handleEach passes, for each key, a batch with its first record to the judge.
func (c *court) handleEach(w Worker, epoch uint64, keys ...string) {
	for _, key := range keys {
		c.handles(w, "solo", epoch, ID{key, 1})
	}
}

func TestWhatIsRightAndWrong(t *testing.T) {
	k1, k2, other := ID{"k", 1}, ID{"k", 2}, ID{"other", 1}
	for _, tt := range []struct {
		name  string
		do    func(c *court)
		wrong string // "" if nothing is wrong
	}{
		{"everything in order", func(c *court) {
			c.handles(one, "parent", 1, k1, other)
			c.Passed("parent", k1, other)
			c.handles(two, "child", 1, k2)
		}, ""},
		{"a batch that fails is handled again", func(c *court) {
			c.Ended(c.begins(one, "parent", 1, yes, k1))
			c.handles(one, "parent", 1, k1, other)
		}, ""},
		{"a child before its parent", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.handles(two, "child", 1, k2)
		}, "while 1 records of its parent"},
		{"a key out of order in a shard", func(c *court) {
			c.Put(ID{"k", 3}, "solo", start)
			c.handles(one, "solo", 1, ID{"k", 3})
		}, "although k/1 of parent was not handled"},
		{"in order within a batch", func(c *court) {
			c.Put(ID{"z", 1}, "solo", start)
			c.Put(ID{"z", 2}, "solo", start)
			c.handles(one, "solo", 1, ID{"z", 1}, ID{"z", 2})
		}, ""},
		{"out of order within a batch", func(c *court) {
			c.Put(ID{"z", 1}, "solo", start)
			c.Put(ID{"z", 2}, "solo", start)
			c.handles(one, "solo", 1, ID{"z", 2}, ID{"z", 1})
		}, "although z/1"},
		{"a lease of a deleted stream reads the new one", func(c *court) {
			c.Born("grandchild", "solo")
			c.Put(ID{"z", 1}, "solo", start)
			c.Put(ID{"z", 2}, "grandchild", start)
			b := &Batch{Worker: one, Shard: "grandchild", Epoch: 1, IDs: []ID{{"z", 2}}, Alive: yes, Stale: true}
			c.Begin(b, c.now)
			c.Done(b, 1, c.now)
			c.Acked(b, 1)
			c.Ended(b)
			if home := c.Home(ID{"z", 2}); home != "grandchild" || c.Home(ID{"z", 3}) != "" {
				c.breaks("the record was put into %s", home)
			}
			if _, left := c.Waits("grandchild"); left != 1 {
				c.breaks("%d are left, and what a stale lease brought does not count", left)
			}
		}, ""},
		{"a record that nobody put", func(c *court) { c.handles(one, "parent", 1, ID{"k", 9}) }, "which was never put there"},
		{"a record of another shard", func(c *court) { c.handles(one, "parent", 1, k2) }, "which was never put there"},
		{"two workers at once", func(c *court) {
			c.begins(one, "parent", 1, yes, k1)
			c.begins(two, "parent", 2, yes, k1)
		}, "the lease of parent is valid for two workers at once"},
		{"the first was told to stop", func(c *court) {
			c.begins(one, "parent", 1, no, k1)
			c.begins(two, "parent", 2, yes, k1)
		}, ""},
		{"what is moved back is handled again", func(c *court) {
			c.handles(one, "parent", 1, k1, other)
			c.handles(one, "child", 1, k2)
			c.Moved("parent", 2, []ID{k1}, []ID{other}, c.now)
			c.Moved("child", 2, nil, []ID{k2}, c.now)
			if c.Missing() != 2 || c.Over("child") {
				c.breaks("%d are missing, and 2 came back", c.Missing())
			}
			c.handles(two, "parent", 3, other)
			c.handles(two, "child", 3, k2)
			if c.Missing() != 0 {
				c.breaks("%d are missing, such as %s", c.Missing(), c.Lost())
			}
		}, ""},
		{"a child that was moved back, before its parent", func(c *court) {
			c.handles(one, "parent", 1, k1, other)
			c.handles(one, "child", 1, k2)
			c.Moved("parent", 2, nil, []ID{k1, other}, c.now)
			c.Moved("child", 2, nil, []ID{k2}, c.now)
			c.handles(two, "child", 3, k2)
		}, "while 2 records of its parent"},
		{"a child before its turn, while checkpoints are moved", func(c *court) {
			c.handles(one, "parent", 1, k1, other)
			c.Moved("parent", 2, nil, []ID{k1, other}, c.now)
			c.Begin(&Batch{Worker: one, Shard: "child", Epoch: 1, IDs: []ID{k2}, Alive: yes, Amid: true}, c.now)
		}, ""},
		{"what an owner of before does counts for nothing", func(c *court) {
			b := c.begins(one, "parent", 1, no, k1, other)
			c.Moved("parent", 2, nil, []ID{k1, other}, c.now)
			c.Done(b, 2, c.now)
			c.Acked(b, 2)
			c.Ended(b)
			c.Passed("parent", k1)
		}, "passes k/1, which was not handled"},
		{"what is skipped need not be handled", func(c *court) {
			c.Moved("parent", 2, []ID{k1, other}, nil, c.now)
			c.Passed("parent", k1, other)
			c.handles(two, "child", 1, k2)
		}, ""},
		{"… until it is wanted again", func(c *court) {
			c.Moved("parent", 2, []ID{k1, other}, nil, c.now)
			c.Moved("parent", 3, nil, []ID{k1, other}, c.now)
			c.handles(two, "child", 1, k2)
		}, "while 2 records of its parent"},
		{"an old epoch begins", func(c *court) {
			c.Ended(c.begins(one, "parent", 2, yes, k1))
			c.begins(two, "parent", 1, yes, k1)
		}, "at epoch 1 after somebody began at 2"},
		{"again at the same epoch", func(c *court) {
			c.Fault(one, c.now)
			c.handles(one, "parent", 1, k1)
			c.handles(one, "parent", 1, k1)
		}, "again at the same epoch"},
		{"again at the same epoch, a record that may be repeated", func(c *court) {
			c.handles(one, "parent", 1, k1)
			b := &Batch{Worker: one, Shard: "parent", Epoch: 1, IDs: []ID{k1, other}, Alive: yes, Repeats: map[ID]bool{k1: true}}
			c.Begin(b, c.now)
		}, ""},
		{"… and another one", func(c *court) {
			c.handles(one, "parent", 1, k1, other)
			b := &Batch{Worker: one, Shard: "parent", Epoch: 1, IDs: []ID{k1, other}, Alive: yes, Repeats: map[ID]bool{k1: true}}
			c.Begin(b, c.now)
		}, "is handed other/1 in parent again at the same epoch"},
		{"again without a reason", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.handles(two, "parent", 2, k1)
		}, "nothing had happened to that"},
		{"again because the first worker died", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Fault(one, c.now)
			c.handles(two, "parent", 2, k1)
		}, ""},
		{"again, and only the second worker had trouble", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Fault(two, c.now)
			c.handles(two, "parent", 2, k1)
		}, "nothing had happened to that"},
		{"again because of trouble that was long over", func(c *court) {
			c.Fault(one, c.now)
			c.now = c.now.Add(time.Minute)
			c.handles(one, "parent", 1, k1)
			c.handles(two, "parent", 2, k1)
		}, "nothing had happened to that"},
		{"again because of an outage for everybody", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Fault(Worker{}, c.now)
			c.handles(two, "parent", 2, k1)
		}, ""},
		{"done, but the handler was not told that it counts", func(c *court) {
			b := c.begins(one, "parent", 1, yes, k1)
			c.Done(b, 1, c.now)
			c.Ended(b)
			c.handles(two, "parent", 2, k1)
		}, ""},
		{"a checkpoint that passes what was not handled", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Passed("parent", k1, other)
		}, "passes other/1"},
		{"… that was handed over and not handled", func(c *court) {
			c.begins(one, "parent", 1, yes, k1)
			c.Passed("parent", k1)
		}, "passes k/1"},
		{"… that has expired", func(c *court) {
			c.Exempt(k1)
			c.Passed("parent", k1)
		}, ""},
		{"a child after what its parent had has expired", func(c *court) {
			c.Exempt(k1)
			c.Exempt(other)
			c.handles(two, "child", 1, k2)
		}, ""},
		{"the end of a shard with records left", func(c *court) {
			c.Begin(&Batch{Worker: one, Shard: "parent", Epoch: 1, IDs: []ID{k1}, End: true, Alive: yes}, c.now)
		}, "the end of parent"},
		{"the end of a shard with its last records", func(c *court) {
			c.Begin(&Batch{Worker: one, Shard: "parent", Epoch: 1, IDs: []ID{k1, other}, End: true, Alive: yes}, c.now)
		}, ""},
		{"progress of a later owner that does not count yet, and is handled again", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Fault(one, c.now)
			c.Noted(c.begins(two, "parent", 2, no, k1), 1, c.now)
			c.begins(two, "parent", 2, yes, k1)
		}, ""},
		{"… and counts", func(c *court) {
			c.handles(one, "parent", 1, k1)
			c.Fault(one, c.now)
			c.handles(two, "parent", 2, k1)
			c.begins(two, "parent", 2, yes, k1)
		}, "again at the same epoch 2"},
		{"a dead letter of a record whose handler was told that its progress does not count", func(c *court) {
			c.Noted(c.begins(one, "parent", 1, yes, k1), 1, c.now)
			c.GivenUp(one, 1, k1, false, c.now)
		}, ""},
		{"a dead letter twice at one epoch", func(c *court) {
			c.GivenUp(one, 1, k1, false, c.now)
			c.GivenUp(one, 1, k1, false, c.now)
		}, "puts the dead letter of k/1 twice at the same epoch 1"},
		{"a dead letter twice after progress that does not count", func(c *court) {
			c.Noted(c.begins(one, "parent", 1, yes, k1), 1, c.now)
			c.GivenUp(one, 1, k1, false, c.now)
			c.GivenUp(one, 1, k1, false, c.now)
		}, "puts the dead letter of k/1 twice at the same epoch 1"},
		{"a dead letter again, because putting it seemed to fail", func(c *court) {
			c.GivenUp(one, 1, k1, false, c.now)
			c.GivenUp(one, 1, k1, true, c.now)
		}, ""},
		{"a dead letter at the next epoch", func(c *court) {
			c.GivenUp(one, 1, k1, false, c.now)
			c.GivenUp(two, 2, k1, false, c.now)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open()
			tt.do(c)
			if got := c.Wrong(); tt.wrong == "" && got != "" || !strings.Contains(got, tt.wrong) {
				t.Errorf("the judge says %q, want %q", got, tt.wrong)
			}
		})
	}
}

func TestWhatIsMissing(t *testing.T) {
	c := open()
	if c.Missing() != 3 {
		t.Fatalf("%d are missing at first, want 3", c.Missing())
	}
	c.handles(one, "parent", 1, ID{"k", 1})
	c.handles(one, "parent", 1, ID{"other", 1})
	if c.Missing() != 1 || c.Lost() != "k/2 of child" {
		t.Errorf("%d are missing, such as %s", c.Missing(), c.Lost())
	}
	c.Exempt(ID{"k", 2})
	c.Exempt(ID{"k", 2})
	if c.Missing() != 0 || c.Lost() != "" || c.Handled != 2 || c.Again != 0 {
		t.Errorf("%d are missing, such as %q; %d were handled, %d again", c.Missing(), c.Lost(), c.Handled, c.Again)
	}
}

func TestWhatIsRightAndWrongSideBySide(t *testing.T) {
	id := func(key string, n int) ID { return ID{key, n} }
	for _, tt := range []struct {
		name  string
		do    func(c *court)
		wrong string // "" if nothing is wrong
	}{
		{"two keys at a time", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1))
			c.handles(one, "solo", 1, id("b", 1))
		}, ""},
		{"a key twice at a time", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1))
			c.begins(one, "solo", 1, yes, id("a", 1))
		}, "at once"},
		{"two workers at a time", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1))
			c.begins(two, "solo", 2, yes, id("b", 1))
		}, "at once"},
		{"two partitions at a time", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1)).Partitions = 2
			c.Begin(&Batch{Worker: one, Shard: "solo", Epoch: 1, IDs: []ID{id("b", 1), id("c", 1)}, Alive: yes, Partition: 1, Partitions: 2}, c.now)
		}, ""},
		{"a partition twice at a time", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1)).Partitions = 2
			c.Begin(&Batch{Worker: one, Shard: "solo", Epoch: 1, IDs: []ID{id("b", 1)}, Alive: yes, Partitions: 2}, c.now)
		}, "at once"},
		{"two batches of a worker with one partition", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1)).Partitions = 1
			c.Begin(&Batch{Worker: one, Shard: "solo", Epoch: 1, IDs: []ID{id("b", 1)}, Alive: yes, Partitions: 1}, c.now)
		}, "at once"},
		{"the end beside a key", func(c *court) {
			for _, key := range []string{"b", "c"} {
				c.handles(one, "solo", 1, id(key, 1))
			}
			c.begins(one, "solo", 1, yes, id("a", 1))
			c.Begin(&Batch{Worker: one, Shard: "solo", Epoch: 1, End: true, Alive: yes}, c.now)
		}, "at once"},
		{"a span ahead of what is not done", func(c *court) {
			c.handles(one, "solo", 1, id("b", 1))
			c.handles(one, "solo", 1, id("c", 1))
		}, ""},
		{"more than a span ahead", func(c *court) { c.handles(one, "solo", 1, id("d", 1)) }, "3 records ahead"},
		{"a span again with another owner", func(c *court) {
			c.handleEach(one, 1, "a", "b", "c")
			c.handleEach(two, 2, "a", "b", "c")
		}, ""},
		{"more than a span again", func(c *court) {
			c.handleEach(one, 1, "a", "b", "c")
			c.handles(one, "solo", 1, id("d", 1))
			c.handleEach(two, 2, "a", "b", "c", "d")
		}, "more than 3 records"},
		{"again with the same owner", func(c *court) {
			c.handles(one, "solo", 1, id("a", 1))
			c.handles(one, "solo", 1, id("a", 1))
		}, "again at the same epoch"},
		{"… whose term began anew", func(c *court) {
			c.handles(one, "solo", 1, id("a", 1))
			c.Fault(one, c.now)
			c.handles(one, "solo", 1, id("a", 1))
		}, ""},
		{"two keys in one batch", func(c *court) {
			c.begins(one, "solo", 1, yes, id("a", 1), id("b", 1))
		}, "which are of two keys"},
		{"a dead letter of what was handled", func(c *court) {
			c.handles(one, "solo", 1, id("a", 1))
			c.GivenUp(one, 1, id("a", 1), false, c.now)
		}, "which it has handled at the same epoch"},
		{"a dead letter, out of order, in a term that began anew", func(c *court) {
			c.Put(id("a", 2), "solo", start)
			c.Fault(one, c.now)
			c.GivenUp(one, 1, id("a", 2), false, c.now)
		}, "although an earlier record"},
	} {
		c := &court{New(), start}
		c.Span = 3
		for _, key := range []string{"a", "b", "c", "d"} {
			c.Put(id(key, 1), "solo", start)
		}
		c.now = c.now.Add(time.Minute)
		tt.do(c)
		if got := c.Wrong(); (got == "") != (tt.wrong == "") || !strings.Contains(got, tt.wrong) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.wrong)
		}
	}
}
