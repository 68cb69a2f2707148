package lease

// Facts is a leader's knowledge in addition to a [View]: its observations over time, and the
// listings of the streams.
type Facts struct {
	// Dead contains the sessions whose heartbeat count has not changed for the failover time, with
	// that count.
	Dead map[string]uint64
	// Ripe contains revoked leases, with their epochs, whose old owner has not acknowledged the
	// revocation. These leases are no longer valid for the old owner, because the failover time has
	// passed since it could learn of the revocation.
	Ripe map[Key]uint64
	// Overdue contains leases, with their epochs, that have had the same heir for longer than the
	// handoff timeout.
	Overdue map[Key]uint64
	// Gone contains parents that have no lease and have left the stream. No child waits for them.
	// Such a parent is missing from a complete listing that began after the leader had seen a lease
	// with that parent.
	Gone map[Key]bool
	// OutOfDate contains sessions whose fingerprint differs from their leases for longer than a
	// delayed heartbeat can explain.
	OutOfDate map[string]bool
	// Forgettable contains sessions that ended long ago. No call by them or about them can still be
	// in progress. If their row were removed earlier, a late copy of the session's first heartbeat
	// could create it again, and the session would treat its leases as valid.
	Forgettable map[string]bool
	// Loads contains the loads of leases without noise, see [Watch]. A lease that is missing here
	// counts with its own Load.
	Loads map[Key]Load
	// Cooling contains leases, with their epochs, that are new or whose epoch changed recently. The
	// plan never moves them to balance the load. It moves them to reach shares only if no other
	// lease can be moved.
	Cooling map[Key]uint64
	// Recent contains those of Cooling that changed within the last heartbeat interval.
	Recent map[Key]uint64
	// Streams are the streams that the leader reads. If Streams is zero, the plan uses the streams
	// that the leader's row in the view contains.
	Streams Streams
}

// Any reports whether at least one fact requires a new plan.
func (f Facts) Any() bool {
	return len(f.Dead)+len(f.Ripe)+len(f.Overdue)+len(f.OutOfDate)+len(f.Forgettable) > 0
}

// Limits limit the actions of a plan.
type Limits struct {
	// MovesInFlight is the maximum number of concurrent handoffs. Handoffs of leaving workers do
	// not count. Zero or less means the default of 256.
	MovesInFlight int
}
