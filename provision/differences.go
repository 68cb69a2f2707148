package provision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// state is the service's description of a stream.
type state struct {
	arn       string
	status    string
	onDemand  bool
	shards    int    // number of open shards
	key       string // key of the encryption; "" if there is none
	encrypted bool
	retention time.Duration
	record    int // maximum size of a record in bytes
}

// A step is one change of a stream that is being created. The service accepts only one change at a
// time.
type step int

const (
	nothing step = iota
	retain       // increase the retention
	encrypt      // start the encryption
)

// next returns the next step for a new stream.
func next(want Stream, has state) step {
	switch {
	case want.KMSKey != "" && !has.encrypted:
		return encrypt // comes first, because records that are written before it are not encrypted
	case want.Retention > has.retention:
		return retain
	}
	return nothing
}

// differences lists how a stream differs from the wanted one. It compares tags if they are known.
func differences(want Stream, has state, tags map[string]string) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case want.Shards > 0 && has.onDemand:
		add("it is in on-demand mode, not in provisioned mode with %d shards", want.Shards)
	case want.Shards == 0 && !has.onDemand:
		add("it is in provisioned mode with %d shards, not in on-demand mode", has.shards)
	case want.Shards > 0 && want.Shards != has.shards:
		add("it has %d open shards, not %d", has.shards, want.Shards)
	}
	switch {
	case want.KMSKey != "" && !has.encrypted:
		add("it is not encrypted, with %s or another key", want.KMSKey)
	case want.KMSKey != "" && otherKey(want.KMSKey, has.key):
		add("it is encrypted with the key %s, not with %s", has.key, want.KMSKey)
	}
	if want.Retention != 0 && want.Retention != has.retention {
		add("it keeps records for %s, not for %s", hours(has.retention), hours(want.Retention))
	}
	if want.MaxRecordSize != 0 && want.MaxRecordSize != has.record {
		add("its records may have %d KiB, not %d", has.record>>10, want.MaxRecordSize>>10)
	}
	if tags == nil {
		return all
	}
	for _, key := range slices.Sorted(maps.Keys(want.Tags)) {
		switch value, there := tags[key]; {
		case !there:
			add("it has no tag %q", key)
		case value != want.Tags[key]:
			add("its tag %q is %q, not %q", key, value, want.Tags[key])
		}
	}
	return all
}

// otherKey reports whether two aliases or two key IDs differ. An alias may belong to any key ID.
func otherKey(a, b string) bool {
	id := func(key string) (name string, alias bool) {
		alias = strings.HasPrefix(key, "alias/") || strings.Contains(key, ":alias/")
		if i := strings.LastIndexByte(key, ':'); i >= 0 {
			key = key[i+1:]
		}
		return strings.TrimPrefix(key, "key/"), alias
	}
	of, aliasA := id(a)
	other, aliasB := id(b)
	return aliasA == aliasB && of != other
}

func hours(d time.Duration) string { return fmt.Sprintf("%d h", int(d.Hours())) }
