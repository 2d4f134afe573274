package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/provider"
)

// Source is an endpoint of the server that the stories are played to.
type Source struct {
	// Provider signs with Signing.
	Provider *provider.Provider
	Signing  string
}

// Stage is what the stories are played on.
type Stage struct {
	// Inbox and Admin are the addresses of the two listeners, as
	// http://127.0.0.1:8080.
	Inbox, Admin string
	// Sources holds stripe, kiwify, hotmart, pagarme and music.
	Sources map[string]Source
	// Store is where the figures are read from.
	Store onceward.Reader
	// Seed draws the day. Now is when deliveries are signed.
	Seed uint64
	Now  func() time.Time
	// Progress is told in a few words what goes on.
	Progress func(format string, args ...any)
}

// connections is how many the senders have open at once.
const connections = 64

// player sends every delivery to the server and to the naive handlers.
type player struct {
	Stage
	client *sender.Client
	naive  *naive
	beside string // the address of the naive handlers

	mu   sync.Mutex // over sent
	sent map[string]int
}

// Play plays both stories and returns what came of them. An error means that the
// stories could not be played to the end; figures that do not agree are in the
// result.
func Play(ctx context.Context, s Stage) (result *Result, err error) {
	p := &player{Stage: s, client: sender.New(connections, s.Now), naive: newNaive(), sent: map[string]int{}}
	defer p.client.Close()
	close, err := p.openNaive()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, close()) }()
	s.Progress("the song: one task, three callbacks, %d connections", connections)
	if err := p.song(ctx); err != nil {
		return nil, fmt.Errorf("the song: %w", err)
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	sales := script(rng)
	s.Progress("the day: %d sales from four senders", len(sales))
	if err := p.day(ctx, sales, rng); err != nil {
		return nil, fmt.Errorf("the day: %w", err)
	}
	s.Progress("reading the figures back from the store")
	return p.count(ctx, sales)
}

// openNaive puts the naive handlers on a listener of their own.
func (p *player) openNaive() (close func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the naive handlers: %w", err)
	}
	p.beside = "http://" + l.Addr().String()
	server := &http.Server{Handler: p.naive, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return func() error {
		p.client.Close()
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// call sends one delivery: to the server, then to the naive handlers. A lost
// answer is one that did not come back from either.
func (p *player) call(ctx context.Context, d delivery) error {
	source := p.Sources[d.source]
	signed := sender.Delivery{
		Provider: source.Provider, Signing: source.Signing, To: p.Inbox + "/in/" + d.source, Header: d.header, Body: d.body,
	}
	send := p.client.Send
	if d.lost {
		send = p.client.SendAndLose
	}
	p.mu.Lock()
	p.sent[d.source]++
	p.mu.Unlock()
	answer, err := send(ctx, &signed)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if !d.lost && answer.Status != http.StatusOK {
		return fmt.Errorf("%s was answered %d %s; 200 was expected", d.name, answer.Status, answer.Reason)
	}
	signed.To, signed.SignedAs = p.beside+"/"+d.source, signed.To
	if _, err := p.client.Send(ctx, &signed); err != nil {
		return fmt.Errorf("%s, to the naive handlers: %w", d.name, err)
	}
	return nil
}

// musicTask is the song's task, musicUser what the application knows of it.
const (
	musicTask = "madeuptask0001"
	musicUser = "user-1"
)

// callback is one of the three of the song.
func callback(kind, tracks string) event {
	return event{name: kind, source: "music", header: jsonHeader(), body: fmt.Appendf(nil,
		`{"code":200,"msg":"All generated successfully.","data":{"callbackType":"%s","task_id":"%s","data":[%s]}}`, kind, musicTask, tracks)}
}

// song plays the song: its first callback comes, 64 times at once, before the
// application has registered the task; then the others, all at once; and `first`
// once more when all is done.
func (p *player) song(ctx context.Context) error {
	const one = `{"id":"track-1","audio_url":"https://files.example/1.mp3","title":"Made up"}`
	const two = `{"id":"track-2","audio_url":"https://files.example/2.mp3","title":"Made up"}`
	text, first, complete := callback("text", ""), callback("first", one), callback("complete", one+","+two)
	if err := p.together(ctx, &text); err != nil {
		return err
	}
	ref := onceward.Ref{Source: "music", Kind: "job", Key: musicTask}
	if _, err := p.client.Register(ctx, p.Admin, "", ref, map[string]onceward.Value{"user": onceward.String(musicUser)}, musicTask); err != nil {
		return err
	}
	if err := p.together(ctx, &complete, &first); err != nil {
		return err
	}
	return p.call(ctx, delivery{event: &first})
}

// together sends each event from every connection at once.
func (p *player) together(ctx context.Context, events ...*event) error {
	var calls sync.WaitGroup
	errs := make(chan error, connections*len(events))
	start := make(chan struct{})
	for range connections {
		for _, e := range events {
			calls.Go(func() {
				<-start
				errs <- p.call(ctx, delivery{event: e})
			})
		}
	}
	close(start)
	calls.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// day plays the sales: those of different buyers at the same time, the calls about
// one sale one after the other in the order that was drawn, so that the figures of
// the day are the same each time.
func (p *player) day(ctx context.Context, sales []*sale, rng *rand.Rand) error {
	const senders = 16
	calls := make(chan []delivery, len(sales))
	for _, s := range sales {
		calls <- s.deliveries(rng)
	}
	close(calls)
	errs := make(chan error, len(sales))
	var workers sync.WaitGroup
	for range senders {
		workers.Go(func() {
			for list := range calls {
				errs <- p.inOrder(ctx, list)
			}
		})
	}
	workers.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

func (p *player) inOrder(ctx context.Context, list []delivery) error {
	for _, d := range list {
		if err := p.call(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
