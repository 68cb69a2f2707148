package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
)

// RecallMinutes is the number of minutes of history that [Watch.Recall] needs. A verdict mentions
// deaths of the last ten minutes.
const RecallMinutes = 12

// reportPatience is the time after a report in which the next report of a living worker is stored.
const reportPatience = 2 * time.Minute

// deaths returns the sessions that died lately, as the history shows. Such a session does not live,
// and it reported about a shard until another session began to, or until it should have reported
// again. A worker that stops, or that loses a shard and lives, reports that.
func (p Past) deaths(g Group, now time.Time) map[string]health.Death {
	died := map[string]health.Death{}
	for _, all := range p {
		taken := false // another session began after the report
		for i, r := range slices.Backward(all) {
			if r.Minute < now.Unix()/60-RecallMinutes {
				break
			}
			last := i == len(all)-1 && now.Sub(r.at()) >= reportPatience || taken
			ended := r.Marks&(history.Ended|history.Lost|history.Finished) != 0
			if last && !ended && !g.Lives(r.Session) && died[r.Session].At.Before(r.at()) {
				died[r.Session] = health.Death{Worker: cmp.Or(r.Worker, r.Session), At: r.at(), About: true}
			}
			taken = r.Marks&history.Began != 0 && i > 0 && all[i-1].Session != r.Session
		}
	}
	return died
}
