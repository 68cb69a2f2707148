package queues_test

import "flag"

var full = flag.Bool("full", false, "the sizes of make bench-queue, which take minutes")
