package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/onceward/onceward/internal/cli/screen"
)

// logger writes text where a person watches and JSON everywhere else.
func (a *app) logger(level slog.Level) *slog.Logger {
	if isTerminal(a.Stderr) {
		return slog.New(&textHandler{w: a.Stderr, mu: &sync.Mutex{}, level: level})
	}
	return slog.New(slog.NewJSONHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
}

// textHandler writes one short line a record: 12:00:00 ready listen=:8080.
type textHandler struct {
	w      io.Writer
	mu     *sync.Mutex // over w
	level  slog.Level
	prefix string // of the group
	attrs  string
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Time.Format("15:04:05 "))
	if r.Level != slog.LevelInfo {
		b.WriteString(strings.ToLower(r.Level.String()) + ": ")
	}
	b.WriteString(screen.Clean(r.Message) + h.attrs)
	r.Attrs(func(attr slog.Attr) bool {
		b.WriteString(text(h.prefix, attr))
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String()+"\n")
	return err
}

func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	for _, attr := range attrs {
		next.attrs += text(h.prefix, attr)
	}
	return &next
}

func (h *textHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.prefix += name + "."
	return &next
}

func text(prefix string, attr slog.Attr) string {
	value := attr.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		var b strings.Builder
		for _, member := range value.Group() {
			b.WriteString(text(prefix+attr.Key+".", member))
		}
		return b.String()
	}
	if attr.Key == "" {
		return ""
	}
	shown := screen.Clean(value.String())
	if shown == "" || strings.ContainsAny(shown, " =\"") {
		shown = fmt.Sprintf("%q", shown)
	}
	return " " + prefix + attr.Key + "=" + shown
}
