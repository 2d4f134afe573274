package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/onceward/onceward"
)

// Metrics counts what the engine does, for Prometheus, in a registry of its own.
// All methods are safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	deliveries *prometheus.CounterVec
	facts      *prometheus.CounterVec
	batch      prometheus.Histogram
	commit     prometheus.Histogram
	ack        *prometheus.HistogramVec
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	latency := prometheus.ExponentialBuckets(0.0005, 2, 15) // 0.5 ms to 8 s
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "onceward_deliveries_total", Help: "Events of deliveries, by source and outcome.",
		}, []string{"source", "outcome"}),
		facts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "onceward_facts_total", Help: "Facts folded, by source and verdict.",
		}, []string{"source", "verdict"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "onceward_batch_events", Help: "Events in one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "onceward_commit_seconds", Help: "Time that one commit took.", Buckets: latency,
		}),
		ack: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "onceward_ack_seconds", Help: "Time from the arrival of a delivery to its answer.", Buckets: latency,
		}, []string{"source"}),
	}
	m.registry.MustRegister(m.deliveries, m.facts, m.batch, m.commit, m.ack)
	return m
}

// Delivered counts one event of a delivery.
func (m *Metrics) Delivered(source string, outcome onceward.Outcome) {
	m.deliveries.WithLabelValues(source, outcome.String()).Inc()
}

// Folded counts one fact.
func (m *Metrics) Folded(source string, verdict onceward.Verdict) {
	m.facts.WithLabelValues(source, verdict.String()).Inc()
}

// Committed notes one commit: how many events it took in and how long it took.
func (m *Metrics) Committed(events int, took time.Duration) {
	m.batch.Observe(float64(events))
	m.commit.Observe(took.Seconds())
}

// Acknowledged notes how long a sender waited for its answer.
func (m *Metrics) Acknowledged(source string, took time.Duration) {
	m.ack.WithLabelValues(source).Observe(took.Seconds())
}

// gauges reads what the store and the engine know when they are asked.
type gauges struct {
	stats func(context.Context) (onceward.Stats, error)
	depth func() int
	log   *slog.Logger

	queue, pending, dead, quarantine, entities, up *prometheus.Desc
}

func newGauges(stats func(context.Context) (onceward.Stats, error), depth func() int, log *slog.Logger) *gauges {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &gauges{
		stats: stats, depth: depth, log: log,
		queue:      desc("onceward_queue_events", "Events that wait for a commit."),
		pending:    desc("onceward_jobs_pending", "Unfinished jobs."),
		dead:       desc("onceward_jobs_dead", "Jobs given up."),
		quarantine: desc("onceward_quarantine_deliveries", "Rejected deliveries kept in quarantine."),
		entities:   desc("onceward_entities", "Rows."),
		up:         desc("onceward_store_up", "1 if the store answered."),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.queue, g.pending, g.dead, g.quarantine, g.entities, g.up} {
		out <- d
	}
}

// Collect implements prometheus.Collector. A store that does not answer leaves
// out its own figures and never fails the others.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(g.queue, float64(g.depth()))
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	stats, err := g.stats(ctx)
	if err != nil {
		g.log.Warn("the store did not answer /metrics", "error", err)
		gauge(g.up, 0)
		return
	}
	gauge(g.up, 1)
	gauge(g.pending, float64(stats.JobsPending))
	gauge(g.dead, float64(stats.JobsDead))
	gauge(g.quarantine, float64(stats.Quarantined))
	gauge(g.entities, float64(stats.Entities))
}

// handler answers /metrics.
func (m *Metrics) handler(g *gauges) http.Handler {
	m.registry.MustRegister(g)
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
