package lock

// These are the ranks, the highest first. docs/architecture.md explains what each mutex guards.
//
// Consumer.Live, Ready, Shards and Health only take mutexes below Term. A goroutine that holds such
// a mutex cannot take a term's mutex, so these four methods never wait for a term.
type (
	// Leadership guards the state of a leader.
	Leadership struct{}
	// Validity guards how long a worker's leases are valid.
	Validity struct{}
	// Term guards the state of a term.
	Term struct{}
	// Progress guards the progress of a term.
	Progress struct{}
	// Runner guards which keys of a shard are handled.
	Runner struct{}
	// Delivery guards how much of a batch is done.
	Delivery struct{}
	// Slots guards a worker's slots for calls of the handler.
	Slots struct{}
	// Feed guards the pages that were read ahead of a shard.
	Feed struct{}
	// Line guards which shards of a followed stream may have records.
	Line struct{}
	// Waits guards which shards of a followed stream wait.
	Waits struct{}
	// Scheduler guards which reads are due.
	Scheduler struct{}
	// Reader guards the status of a shard that is read by fan-out.
	Reader struct{}
	// Subscription guards the events of a subscription.
	Subscription struct{}
	// Budget guards how much memory records take.
	Budget struct{}
	// Consumer guards the runs of a consumer.
	Consumer struct{}
	// Run guards the state of a run, and its shards.
	Run struct{}
	// Shard guards the state of a shard.
	Shard struct{}
	// Puller guards the progress and the hold of a function that pulls.
	Puller struct{}
	// Judge guards recent observations of shards.
	Judge struct{}
	// Lineage guards the questions about ancestors and their answers.
	Lineage struct{}
	// Sampler guards the samples of shards for the history.
	Sampler struct{}
	// Failures guards the numbers with which a run decides to give up records.
	Failures struct{}
	// Turns guards which shards try a record.
	Turns struct{}
	// FanOut guards the registered consumers.
	FanOut struct{}
	// Catalog guards the creation times of streams.
	Catalog struct{}
	// Call guards the life of a call.
	Call struct{}
	// Silence guards the statistics of answer times.
	Silence struct{}
	// Client guards the hosts of an HTTP client.
	Client struct{}
	// Host guards the connections to a host.
	Host struct{}
	// Queue guards the waiting calls of hooks.
	Queue struct{}
)

// Ranks lists all ranks, the highest first.
var Ranks = []Rank{
	Leadership{}, Validity{}, Term{}, Progress{}, Runner{}, Delivery{}, Slots{}, Feed{}, Line{}, Waits{}, Scheduler{}, Reader{}, Subscription{}, Budget{},
	Consumer{}, Run{}, Shard{}, Puller{}, Judge{}, Lineage{}, Sampler{}, Failures{}, Turns{}, FanOut{}, Catalog{}, Call{}, Silence{}, Client{}, Host{}, Queue{},
}

// Number returns the rank.
func (Leadership) Number() int { return 30 }

// Number returns the rank.
func (Validity) Number() int { return 29 }

// Number returns the rank.
func (Term) Number() int { return 28 }

// Number returns the rank.
func (Progress) Number() int { return 27 }

// Number returns the rank.
func (Runner) Number() int { return 26 }

// Number returns the rank.
func (Delivery) Number() int { return 25 }

// Number returns the rank.
func (Slots) Number() int { return 24 }

// Number returns the rank.
func (Feed) Number() int { return 23 }

// Number returns the rank.
func (Line) Number() int { return 22 }

// Number returns the rank.
func (Waits) Number() int { return 21 }

// Number returns the rank.
func (Scheduler) Number() int { return 20 }

// Number returns the rank.
func (Reader) Number() int { return 19 }

// Number returns the rank.
func (Subscription) Number() int { return 18 }

// Number returns the rank.
func (Budget) Number() int { return 17 }

// Number returns the rank.
func (Consumer) Number() int { return 16 }

// Number returns the rank.
func (Run) Number() int { return 15 }

// Number returns the rank.
func (Shard) Number() int { return 14 }

// Number returns the rank.
func (Puller) Number() int { return 13 }

// Number returns the rank.
func (Judge) Number() int { return 12 }

// Number returns the rank.
func (Lineage) Number() int { return 11 }

// Number returns the rank.
func (Sampler) Number() int { return 10 }

// Number returns the rank.
func (Failures) Number() int { return 9 }

// Number returns the rank.
func (Turns) Number() int { return 8 }

// Number returns the rank.
func (FanOut) Number() int { return 7 }

// Number returns the rank.
func (Catalog) Number() int { return 6 }

// Number returns the rank.
func (Call) Number() int { return 5 }

// Number returns the rank.
func (Silence) Number() int { return 4 }

// Number returns the rank.
func (Client) Number() int { return 3 }

// Number returns the rank.
func (Host) Number() int { return 2 }

// Number returns the rank.
func (Queue) Number() int { return 1 }
