package lease

// Facts are what a leader knows beyond a [View]: what it saw over time, and what the listing of the
// streams said.
type Facts struct {
	// Dead are the sessions whose beat count has not moved for the failover time, with that count.
	Dead map[string]uint64
	// Ripe are the revoked leases, with their epochs, whose old owner cannot trust them any more
	// although it has not acknowledged: the failover time has passed since it could have been told.
	Ripe map[Key]uint64
	// Overdue are the leases, with their epochs, that have had the same wish for longer than the
	// hand-off timeout.
	Overdue map[Key]uint64
	// Gone are parents without a lease that a complete listing, begun after the lease that names
	// them was seen, did not name either: they have left the stream and nobody waits for them.
	Gone map[Key]bool
	// OutOfDate are the sessions whose fingerprint has differed from the leases for longer than a
	// beat can explain.
	OutOfDate map[string]bool
	// Forgettable are the sessions that have been ended for so long that no call is on its way any
	// more that they sent or that names them. A row that goes earlier can come back with a late
	// copy of the session's first beat, and be trusted.
	Forgettable map[string]bool
	// Loads are the loads of leases without their noise, see [Watch]; a lease that is not here
	// counts with its own.
	Loads map[Key]Load
	// Cooling are the leases, with their epochs, that changed hands so lately that they are not
	// moved for their load, and for shares only where there are no others.
	Cooling map[Key]uint64
	// Recent are the leases, with their epochs, that changed hands or were finished within the last
	// beat interval.
	Recent map[Key]uint64
	// Streams are the streams that the leader reads. The zero value stands for those that the view
	// has of the leader.
	Streams Streams
}

// Any reports whether there is any fact that calls for a plan by itself.
func (f Facts) Any() bool {
	return len(f.Dead)+len(f.Ripe)+len(f.Overdue)+len(f.OutOfDate)+len(f.Forgettable) > 0
}

// Limits bound what one plan does.
type Limits struct {
	// MovesInFlight is how many leases of live workers may be on their way to an heir at once; 0 or
	// less is the default of 256.
	MovesInFlight int
}
