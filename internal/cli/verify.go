package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/provider"
)

type verifyFlags struct {
	secrets []string
	secret2 string
	params  []string
	headers []string
	method  string
	url     string
	body    string
	now     int64
}

func verifyCommand(a *app) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify PROVIDER --secret S [--secret2 S] [--param K=V] [--url U] [-H 'K: V']... [--now UNIX] [--body FILE|-]",
		Short: "say whether a delivery's signature is right",
		Long: `Says whether a delivery's signature is right: prints "valid", or "invalid: " and the reason.
The exit code is 0 or 1; 2 if the call means nothing.

The body has to be the bytes as they came: one blank more, or another order of the members,
and no signature fits. PROVIDER is a name of the catalogue or a file of one's own, as
./acme.yaml.`,
		Example: `  onceward verify stripe --secret whsec_... -H 'Stripe-Signature: t=...,v1=...' --body delivery.json`,
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, given []string) error { return a.verify(c.Context(), given[0], f) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.secrets, "secret", nil, "the secret, or the sender's public key; may be repeated")
	flags.StringVar(&f.secret2, "secret2", "", "another one that is live too")
	flags.StringArrayVar(&f.params, "param", nil, "what the provider wants besides, as user_id=123")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "a header of the delivery, as curl takes it")
	flags.StringVar(&f.method, "method", http.MethodPost, "the method of the delivery")
	flags.StringVar(&f.url, "url", "http://127.0.0.1:8080/", "the address it was sent to, with its query")
	flags.StringVar(&f.body, "body", "-", "the file that holds the body; - for standard input")
	flags.Int64Var(&f.now, "now", 0, "when it came, in seconds since 1970 (default now)")
	c.ValidArgsFunction = completeProviders
	return c
}

func (a *app) verify(_ context.Context, name string, f verifyFlags) error {
	secrets := f.secrets
	if f.secret2 != "" {
		secrets = append(secrets, f.secret2)
	}
	for _, secret := range secrets {
		if err := config.CheckSecret(secret); err != nil {
			return usage("--secret %w", err)
		}
	}
	params := map[string]string{}
	for _, text := range f.params {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return usage("--param %q is not NAME=VALUE", text)
		}
		params[key] = value
	}
	header, err := parseHeaders(f.headers)
	if err != nil {
		return err
	}
	p, err := provider.Compile(provider.SourceConfig{Name: name, Provider: name, Secrets: secrets, Params: params, ReadFile: os.ReadFile})
	if err != nil {
		return &usageError{flagged(err)}
	}
	body, err := a.readInput(f.body)
	if err != nil {
		return &usageError{err}
	}
	now := a.Now()
	if f.now != 0 {
		now = time.Unix(f.now, 0)
	}
	accepted, err := p.Verify(now, &provider.Request{Method: f.method, URL: f.url, Header: header, Body: body})
	return a.printVerdict(accepted, err)
}

// flagged says where a secret or a param goes on this command line.
func flagged(err error) error {
	var all *provider.Errors
	if !errors.As(err, &all) {
		return err
	}
	var texts []string
	for _, p := range all.Problems {
		texts = append(texts, p.Message)
	}
	return fmt.Errorf("%s; here secrets are given as --secret S, params as --param NAME=VALUE", strings.Join(texts, "; "))
}

// parseHeaders reads 'Name: value' as curl does.
func parseHeaders(lines []string) (http.Header, error) {
	header := http.Header{}
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.TrimSpace(name) == "" {
			return nil, usage("header %d is not of the form -H 'Name: value'", i+1)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return header, nil
}

func (a *app) printVerdict(accepted *provider.Accepted, rejection error) error {
	var out struct {
		Valid      bool       `json:"valid"`
		Reason     string     `json:"reason,omitempty"`
		Detail     string     `json:"detail,omitempty"`
		Scheme     string     `json:"scheme,omitempty"`
		SignedAt   *time.Time `json:"signed_at,omitempty"`
		BodySigned bool       `json:"body_signed"`
	}
	text := "valid"
	var rejected *provider.Rejected
	switch {
	case errors.As(rejection, &rejected):
		out.Reason, out.Detail = string(rejected.Reason), rejected.Detail
		text = fmt.Sprintf("invalid: %s", rejected.Detail)
	case rejection != nil:
		return rejection
	default:
		out.Valid, out.Scheme, out.BodySigned = true, accepted.Scheme, accepted.BodySigned
		if !accepted.SignedAt.IsZero() {
			out.SignedAt = &accepted.SignedAt
		}
		if !accepted.BodySigned {
			a.complain("the signature does not cover the body; what it says should be confirmed with the sender")
		}
	}
	write := func() error { return a.print("%s", text) }
	if a.json {
		write = func() error { return a.printJSON(out) }
	}
	if err := write(); err != nil {
		return err
	}
	if !out.Valid {
		return errNo
	}
	return nil
}
