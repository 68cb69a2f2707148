package lease

// Facts is a leader's knowledge beyond a [View]: its observations over time and the listing of the
// streams.
type Facts struct {
	// Dead contains the sessions whose heartbeat count has not moved for the failover time, each
	// with that count.
	Dead map[string]uint64
	// Ripe contains the revoked leases, with their epochs, that the old owner can no longer trust
	// although it has not acknowledged. The failover time has passed since it could have learned of
	// the revocation.
	Ripe map[Key]uint64
	// Overdue contains the leases, with their epochs, that have had the same heir for longer than
	// the hand-off timeout.
	Overdue map[Key]uint64
	// Gone contains parents that have no lease and have left the stream, so no child waits for
	// them. They are missing from a complete listing that began after a lease with that parent was
	// seen.
	Gone map[Key]bool
	// OutOfDate contains the sessions whose fingerprint has differed from the leases for longer
	// than one heartbeat can explain.
	OutOfDate map[string]bool
	// Forgettable contains the sessions that ended so long ago that no call sent by them or naming
	// them is still under way. If their row were removed earlier, a late copy of the session's
	// first heartbeat could create it again, and the session would be trusted.
	Forgettable map[string]bool
	// Loads contains the loads of leases without their noise, see [Watch]. A lease that is missing
	// here counts with its own Load.
	Loads map[Key]Load
	// Cooling contains the leases, with their epochs, that changed owner recently. They are not
	// moved for their load, and are moved for shares only if there are no others.
	Cooling map[Key]uint64
	// Recent contains the leases, with their epochs, that changed owner or were finished within the
	// last heartbeat interval.
	Recent map[Key]uint64
	// Streams are the streams that the leader reads. The zero value means those that the view
	// contains for the leader.
	Streams Streams
}

// Any reports whether some fact requires a plan by itself.
func (f Facts) Any() bool {
	return len(f.Dead)+len(f.Ripe)+len(f.Overdue)+len(f.OutOfDate)+len(f.Forgettable) > 0
}

// Limits restrict what one plan does.
type Limits struct {
	// MovesInFlight is how many leases of live workers may be on their way to an heir at once. Zero
	// or less means the default of 256.
	MovesInFlight int
}
