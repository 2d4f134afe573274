package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/dev"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/provider"
)

type sendFlags struct {
	lifecycle, body, to, secret string
	repeat, concurrency         int
	shuffle                     bool
	seed                        uint64
}

func sendCommand(a *app) *cobra.Command {
	var f sendFlags
	c := &cobra.Command{
		Use:   "send PROVIDER [EVENT] [--lifecycle KIND | --body FILE] [--to URL] [--secret S] [--repeat N] [--shuffle]",
		Short: "send signed deliveries, as the provider does",
		Long: `Sends deliveries that are signed now, to the server of this folder or to --to.

What is sent: --body FILE as it is (- for standard input); or the samples of the catalogue
of type EVENT; or those that tell the life of one entity of a kind (--lifecycle payment).
With none of these it is the life of the kind that the provider is mostly about.

The secret is --secret (for key pairs: the private key); else the first of the source in
onceward.yaml; else $PROVIDER_WEBHOOK_SECRET; else the made-up one of the development mode.

The exit code is 1 if a delivery was not answered with 200.`,
		Example: "  onceward send stripe\n  onceward send stripe charge.refunded --repeat 3\n  onceward send stripe --lifecycle payment --shuffle --repeat 2 --concurrency 8",
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, given []string) error {
			event := ""
			if len(given) == 2 {
				event = given[1]
			}
			return a.send(c.Context(), given[0], event, f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.lifecycle, "lifecycle", "", "send the samples that tell the life of one entity of this kind")
	flags.StringVar(&f.body, "body", "", "send this file as it is; - for standard input")
	flags.StringVar(&f.to, "to", "", "where to: http://127.0.0.1:8080, or the whole address with its path")
	flags.StringVar(&f.secret, "secret", "", "sign with this secret")
	flags.IntVar(&f.repeat, "repeat", 1, "send each this many times")
	flags.IntVar(&f.concurrency, "concurrency", 1, "send this many at the same time")
	flags.BoolVar(&f.shuffle, "shuffle", false, "send in a random order")
	flags.Uint64Var(&f.seed, "seed", 0, "repeat the order of an earlier --shuffle")
	c.ValidArgsFunction = completeSend
	a.complete(c, "lifecycle", func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) == 0 {
			return nil, noFiles
		}
		return lifecycles(given[0]), noFiles
	})
	return c
}

func completeSend(c *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(given) == 1 {
		return sampleTypes(given[0]), noFiles
	}
	return completeProviders(c, given, begun)
}

// sampleTypes lists the types of a provider's samples, each once.
func sampleTypes(name string) []string {
	var types []string
	for _, s := range provider.Samples(name) {
		if label := sampleLabel(&s); !slices.Contains(types, label) {
			types = append(types, label)
		}
	}
	return types
}

// sampleLabel is what a sample is asked for by: its type, or where the sender has
// none its name without the number.
func sampleLabel(s *provider.Sample) string {
	if s.Type != "" {
		return s.Type
	}
	_, label, _ := strings.Cut(s.Name, "-")
	return label
}

// lifecycles lists the kinds that a provider's samples tell about, the one it is
// mostly about first.
func lifecycles(name string) []string {
	p, err := provider.Builtin(name)
	if err != nil {
		return nil
	}
	var kinds []string
	for kind := range p.Kinds() {
		if len(provider.Lifecycle(name, kind)) > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, compareKinds)
	return kinds
}

// compareKinds puts first what a sender is mostly about.
func compareKinds(a, b string) int {
	main := []string{"payment", "job", "order", "subscription"}
	place := func(kind string) int {
		if i := slices.Index(main, kind); i >= 0 {
			return i
		}
		return len(main)
	}
	if c := place(a) - place(b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// target is where deliveries go and how they are signed.
type target struct {
	provider         *provider.Provider
	signing          string
	secretOf         string // in words
	to, signedAs     string
	name, catalogued string // of the source, and of the provider in the catalogue
	maxBody          int64  // in bytes, as far as it is known here
}

func (a *app) send(ctx context.Context, name, event string, f sendFlags) error {
	if f.repeat < 1 || f.concurrency < 1 {
		return usage("--repeat and --concurrency are numbers from 1")
	}
	if err := config.CheckSecret(f.secret); err != nil {
		return usage("--secret %w", err)
	}
	t, err := a.target(name, f)
	if err != nil {
		return err
	}
	items, err := a.items(t, event, f)
	if err != nil {
		return err
	}
	var calls []*sender.Delivery
	for _, d := range items {
		for range f.repeat {
			calls = append(calls, d)
		}
	}
	seed := f.seed
	if f.shuffle {
		if seed == 0 {
			var drawn uint16 // short, so that it can be typed
			if err := binary.Read(a.Random, binary.LittleEndian, &drawn); err != nil {
				return fmt.Errorf("draw a seed: %w", err)
			}
			seed = uint64(drawn) + 1
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	}
	client := sender.New(f.concurrency, a.Now)
	defer client.Close()
	answers, err := sendAll(ctx, client, calls, f.concurrency)
	if err != nil {
		return unreachable(t.to, err)
	}
	report := newReport(t, len(items), calls, answers)
	if f.shuffle {
		report.Seed = fmt.Sprint(seed)
	}
	return a.printSent(report, t, items)
}

// unreachable says what to do where nobody answers.
func unreachable(to string, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		u, parseErr := url.Parse(to)
		if parseErr == nil {
			return fmt.Errorf("nobody answers at %s; start `onceward serve`, or give --to", u.Host)
		}
	}
	if errors.Is(err, provider.ErrNotSignable) {
		return fmt.Errorf("%w; give --secret with what the sender signs with", err)
	}
	return err
}

// target finds out where a source is and what it is signed with.
func (a *app) target(name string, f sendFlags) (*target, error) {
	s, err := a.setup(config.Glance)
	if err != nil {
		return nil, err
	}
	t := &target{name: name, catalogued: name, to: "http://" + devListen + "/in/" + name, maxBody: config.DefaultMaxBody}
	if s.file != nil {
		source := s.file.Source(name)
		for i := range s.file.Sources {
			if source == nil && s.file.Sources[i].Provider.Name() == name {
				source = &s.file.Sources[i]
			}
		}
		if source == nil && f.to == "" {
			return nil, usage("%s has no source and no provider %q; its sources are %s", s.file.File, name, sourceNames(s.file))
		}
		if source != nil {
			t.name, t.catalogued, t.provider = source.Name, source.Provider.Name(), source.Provider
			t.to = localAddress(s.file.Listen) + source.Path
			t.maxBody = source.MaxBody
			t.secretOf = "the first secret of source " + source.Name
			if s.file.PublicURL != "" {
				t.signedAs = s.file.PublicURL + source.Path
			}
		}
	}
	if err := a.signer(t, s, f.secret); err != nil {
		return nil, err
	}
	if f.to != "" {
		if t.to, err = fullAddress(f.to, t.name); err != nil {
			return nil, err
		}
		t.signedAs = ""
	}
	return t, nil
}

func sourceNames(c *config.Config) string {
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// signer finds the secret.
func (a *app) signer(t *target, s *setup, secret string) error {
	if t.provider != nil && secret == "" {
		if s.file.Source(t.name).Secrets == nil && s.file.Source(t.name).SecretsFrom != nil {
			return fmt.Errorf("the secret of source %s is not set here: %s; set it, or give --secret", t.name, strings.Join(s.file.Source(t.name).SecretsFrom, ", "))
		}
		return nil
	}
	if t.provider == nil {
		p, err := provider.Builtin(t.catalogued)
		if err != nil {
			return &usageError{err}
		}
		t.provider = p
	}
	switch {
	case secret != "":
		t.signing, t.secretOf = secret, "the secret given"
		return nil
	case a.Getenv(variable(t.catalogued)) != "":
		t.signing, t.secretOf = a.Getenv(variable(t.catalogued)), "the secret in $"+variable(t.catalogued)
		return nil
	}
	secrets, err := dev.Load(dev.PathFor(s.store))
	if err != nil {
		return err
	}
	if t.provider, err = secrets.Source(t.catalogued); err != nil {
		return err
	}
	t.signing, t.secretOf = secrets[t.catalogued].Signing, "the secret of this folder"
	return nil
}

// localAddress is where a listener is reached from this machine.
func localAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// fullAddress adds /in/NAME to an address without a path.
func fullAddress(to, name string) (string, error) {
	if !strings.Contains(to, "://") {
		to = "http://" + to
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usage("--to is an address, as http://127.0.0.1:8080 or https://hooks.example.com/in/%s", name)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/in/" + name
	}
	return u.String(), nil
}

// items are the deliveries to send, each once.
func (a *app) items(t *target, event string, f sendFlags) ([]*sender.Delivery, error) {
	if f.body != "" {
		if event != "" || f.lifecycle != "" {
			return nil, usage("--body is what is sent, so neither EVENT nor --lifecycle goes with it")
		}
		body, err := a.readInput(f.body)
		if err != nil {
			return nil, err
		}
		return []*sender.Delivery{a.delivery(t, http.Header{"Content-Type": {"application/json"}}, body)}, nil
	}
	if event != "" && f.lifecycle != "" {
		return nil, usage("EVENT and --lifecycle are two choices; give one")
	}
	samples, err := choose(t.catalogued, event, f.lifecycle)
	if err != nil {
		return nil, err
	}
	var items []*sender.Delivery
	for i := range samples {
		items = append(items, a.delivery(t, samples[i].Header, samples[i].Body))
	}
	return items, nil
}

func (a *app) delivery(t *target, header http.Header, body []byte) *sender.Delivery {
	return &sender.Delivery{Provider: t.provider, Signing: t.signing, To: t.to, SignedAs: t.signedAs, Header: header, Body: body}
}

// choose picks samples of the catalogue.
func choose(name, event, kind string) ([]provider.Sample, error) {
	all := provider.Samples(name)
	if len(all) == 0 {
		return nil, usage("the catalogue has no samples for %s; give --body FILE", name)
	}
	if event != "" {
		chosen := slices.DeleteFunc(all, func(s provider.Sample) bool { return sampleLabel(&s) != event && s.Name != event })
		if len(chosen) == 0 {
			return nil, usage("the catalogue has no sample %q of %s; it has %s", event, name, strings.Join(sampleTypes(name), ", "))
		}
		return chosen, nil
	}
	kinds := lifecycles(name)
	if kind == "" {
		if len(kinds) == 0 {
			return all, nil
		}
		kind = kinds[0]
	}
	chosen := provider.Lifecycle(name, kind)
	if len(chosen) == 0 {
		return nil, usage("no sample of %s tells about a %s; they tell about %s", name, kind, strings.Join(kinds, ", "))
	}
	return chosen, nil
}

// readInput reads a file, or standard input for -.
func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		body, err := io.ReadAll(a.Stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return body, nil
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return body, nil
}

// sendAll sends the deliveries in their order, so many at the same time, and
// returns the answers in that order.
func sendAll(ctx context.Context, client *sender.Client, calls []*sender.Delivery, concurrency int) ([]sender.Answer, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	answers := make([]sender.Answer, len(calls))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(concurrency, len(calls)) {
		workers.Go(func() {
			for i := range next {
				answer, err := client.Send(ctx, calls[i])
				if err != nil {
					stop(err)
					return
				}
				answers[i] = answer
			}
		})
	}
feed:
	for i := range calls {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}
