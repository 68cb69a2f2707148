package foreign

import (
	"time"

	"github.com/weir-go/weir/shard"
)

// The attributes of vmware-go-kcl.
const (
	vmwareShard   = "ShardID"
	vmwareNumber  = "Checkpoint"
	vmwareOwner   = "AssignedTo"
	vmwareTimeout = "LeaseTimeout"
	vmwareParent  = "ParentShardId"
	vmwareClaim   = "ClaimRequest"
	vmwareEnd     = "SHARD_END"
)

// VMwareFailover is the default lease duration of vmware-go-kcl.
const VMwareFailover = 10 * time.Second

// ReadVMware returns the state of an application from the items of its table. every is the lease
// duration of its workers.
func ReadVMware(items []Item, every time.Duration) (State, error) {
	var s State
	for _, it := range items {
		id, err := it.text("", vmwareShard)
		if err != nil {
			return s, err
		}
		if err := checkShard(id); err != nil {
			return s, err
		}
		number, err := it.text(id, vmwareNumber)
		if err != nil {
			return s, err
		}
		owner, err := it.text(id, vmwareOwner)
		if err != nil {
			return s, err
		}
		expires, err := it.clock(id, vmwareTimeout)
		if err != nil {
			return s, err
		}
		row := Row{Shard: id, Raw: number, Was: it.was(vmwareNumber, vmwareOwner, vmwareTimeout)}
		if number == vmwareEnd {
			row.At = shard.End
		} else if row.At, err = after(id, number); err != nil {
			return s, err
		}
		s.add(row)
		s.see(expires.Add(-every))
		if owner != "" {
			value := number + " " + expires.Format(time.RFC3339Nano)
			s.Signs = append(s.Signs, Sign{id, owner, value, expires, every})
		}
	}
	s.sort()
	return s, nil
}
