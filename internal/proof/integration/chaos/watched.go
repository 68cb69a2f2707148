package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/chaos/watch"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/promweir"
)

const (
	metricsFile = "metrics"
	scrapeEvery = time.Second
)

// prometheus is a Prometheus server that scrapes each worker.
type prometheus struct {
	url     string
	targets []string // addresses by slot
	offset  int64    // difference between the wall clock and the clock of the files
}

// watch starts a Prometheus server before the workers start.
func (s *stage) watch(t testing.TB) error {
	if !s.Watched {
		return nil
	}
	p := &prometheus{offset: time.Now().UnixNano() - now()}
	quoted := make([]string, s.Workers)
	for i := range quoted {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // after all ports have been selected
		p.targets = append(p.targets, l.Addr().String())
		quoted[i] = strconv.Quote(p.targets[i])
	}
	p.url = servers.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: %v, scrape_timeout: %v}
scrape_configs:
  - job_name: weir
    static_configs: [{targets: [%s]}]
`, scrapeEvery, scrapeEvery, strings.Join(quoted, ", "))).URL
	s.prometheus = p
	return nil
}

// collect writes the scraped samples to a file, after the last records.
func (s *stage) collect() error {
	if s.prometheus == nil {
		return nil
	}
	settled := time.NewTimer(3 * scrapeEvery)
	<-settled.C
	if set := time.Duration(time.Now().UnixNano() - now() - s.prometheus.offset); set.Abs() > 50*time.Millisecond {
		s.blame("somebody set the wall clock by %v, so metrics and files cannot be compared", set)
	}
	seen := watch.Seen{}
	for _, metric := range watch.Metrics() {
		series, err := s.prometheus.all(metric, time.Since(s.started)+readyWithin)
		if err != nil {
			return fmt.Errorf("Prometheus: %s: %w", metric, err)
		}
		seen[metric] = series
	}
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, metricsFile), text, 0o600)
}

// all returns all samples of a metric.
func (p *prometheus) all(metric string, back time.Duration) ([]watch.Series, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	query := url.Values{"query": {fmt.Sprintf("%s[%ds]", metric, int(back.Seconds())+1)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	var all []watch.Series
	for _, r := range answer.Data.Result {
		s := watch.Series{Labels: r.Metric}
		for _, v := range r.Values {
			at, is := v[0].(float64)
			text, also := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if !is || !also || err != nil {
				return nil, fmt.Errorf("%v is no sample", v)
			}
			s.Samples = append(s.Samples, watch.Sample{At: int64(math.Round(at*1000))*int64(time.Millisecond) - p.offset, Value: value})
		}
		all = append(all, s)
	}
	return all, nil
}

// compare compares the scraped samples with the output of the handlers. Without -watched it returns
// nil.
func compare(h verdict.History, dir string, bounds watch.Bounds) (*watch.Report, error) {
	text, err := os.ReadFile(filepath.Join(dir, metricsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen := watch.Seen{}
	if err := json.Unmarshal(text, &seen); err != nil {
		return nil, err
	}
	return watch.Compare(h, seen, bounds), nil
}

// tell serves the metrics of a worker at an address until stop is called. The metrics are available
// after watch is called with the consumer.
func tell(addr string, o *weir.Options) (watch func(*weir.Consumer) error, stop func()) {
	if addr == "" {
		return func(*weir.Consumer) error { return nil }, func() {}
	}
	metrics := promweir.New(o, promweir.Config{ShardLabel: true, Version: "chaos"})
	server := &http.Server{Handler: promweir.Handler(metrics), ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	watch = func(c *weir.Consumer) error {
		metrics.Watch(c)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			close(served)
			return err
		}
		go func() { // ends with stop
			defer close(served)
			_ = server.Serve(l)
		}()
		return nil
	}
	return watch, func() {
		_ = server.Close()
		<-served
	}
}

// watchedBounds returns the allowed deviations of metrics.
func watchedBounds(s settings) watch.Bounds {
	off := s.Allowance / 2
	// A read that gets no answer fails only after readEnds. Only then does its shard count as
	// waiting.
	return watch.Bounds{Delay: off, Over: off, Under: readEnds + off, Silence: readEnds + off + scrapeEvery, Thawed: s.Failover + off}
}
