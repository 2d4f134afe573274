package verify

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// ChallengeConfig is `challenge` as it stands in the file, text unparsed.
type ChallengeConfig struct {
	Method string            // default POST
	When   string            // condition
	Text   string            // expression
	JSON   map[string]string // expressions, by name
}

// Challenge answers the handshake by which a sender asks whether somebody listens.
// It is immutable and safe for concurrent use.
type Challenge struct {
	verifier *Verifier
	method   string
	when     *expr.Program
	text     *expr.Program
	names    []string // of json, sorted
	json     map[string]*expr.Program
}

// CompileChallenge compiles a challenge and returns every fault. V is what
// `sign(x)` signs with; it may be nil if nothing verifies.
func CompileChallenge(cfg ChallengeConfig, names expr.Names, v *Verifier) (*Challenge, []Problem) {
	c := compiler{cfg: &Config{}, names: names.WithSign(), entry: &entry{}}
	ch := &Challenge{verifier: v, method: cfg.Method, json: map[string]*expr.Program{}}
	methods := []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut}
	switch upper := strings.ToUpper(cfg.Method); {
	case cfg.Method == "":
		ch.method = http.MethodPost
	case slices.Contains(methods, cfg.Method):
	case slices.Contains(methods, upper):
		c.problem("method", fmt.Sprintf("%q is no method", cfg.Method), "did you mean "+upper+"?")
	default:
		c.problem("method", fmt.Sprintf("%q is no method of a challenge", cfg.Method), "it is one of "+strings.Join(methods, ", "))
	}
	if cfg.When == "" {
		c.problem("when", "when is missing", "without it every "+ch.method+" would be answered and nothing stored")
	}
	ch.when = c.condition("when", cfg.When)
	switch {
	case cfg.Text != "" && len(cfg.JSON) > 0:
		c.problem("text", "a challenge is answered with text or with json", "leave one of them out")
	case cfg.Text == "" && len(cfg.JSON) == 0:
		c.problem("text", "nothing says what to answer", "write text or json")
	}
	ch.text = c.expression("text", cfg.Text)
	ch.names = slices.Sorted(maps.Keys(cfg.JSON))
	for _, name := range ch.names {
		ch.json[name] = c.expression("json."+name, cfg.JSON[name])
	}
	if len(c.problems) == 0 && cfg.signs(names) && !v.signsText() {
		c.problem("", "sign needs a scheme that signs a text", "hmac and standard-webhooks do")
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return ch, nil
}

// signs reports whether a configuration that compiles calls sign: without that
// function it would not.
func (cfg ChallengeConfig) signs(names expr.Names) bool {
	if _, err := expr.CompileCondition(cfg.When, names); err != nil {
		return true
	}
	for _, text := range append(slices.Collect(maps.Values(cfg.JSON)), cfg.Text) {
		if _, err := expr.Compile(text, names); text != "" && err != nil {
			return true
		}
	}
	return false
}

// signsText reports whether [Verifier.SignText] can work with some secret.
func (v *Verifier) signsText() bool {
	return v != nil && slices.ContainsFunc(v.entries, func(e *entry) bool {
		return e.scheme == SchemeHMAC || e.scheme == SchemeStandardWebhooks
	})
}

// Method is the request method of the challenge.
func (ch *Challenge) Method() string { return ch.method }

// Answer returns what a request is answered with, under status 200, if it is the
// challenge; ok says whether it is. A POST must have been verified before; other
// methods need not. Secrets are those that `sign(x)` may use: the one that
// verified, or all of them; the first that can sign does. The error says that it
// cannot be told or answered, as when the body is not what the sender's format
// says: such a request is no challenge.
func (ch *Challenge) Answer(method string, in expr.Input, secrets []Secret) (body []byte, contentType string, ok bool, err error) {
	if method != ch.method {
		return nil, "", false, nil
	}
	in = &signingInput{Input: in, verifier: ch.verifier, secrets: secrets}
	holds, err := ch.when.True(in)
	if err != nil {
		return nil, "", false, fmt.Errorf("challenge: when: %s cannot be computed: %w", ch.when.Source(), err)
	}
	if !holds {
		return nil, "", false, nil
	}
	if ch.text != nil {
		text, err := evalText(ch.text, in)
		if err != nil {
			return nil, "", false, fmt.Errorf("challenge: text: %w", err)
		}
		return []byte(text), "text/plain; charset=utf-8", true, nil
	}
	members := make([]tree.Member, 0, len(ch.names))
	for _, name := range ch.names {
		v, err := eval(ch.json[name], in)
		if err != nil {
			return nil, "", false, fmt.Errorf("challenge: json %s: %w", name, err)
		}
		if v.IsNull() {
			v = tree.NullValue()
		}
		members = append(members, tree.Member{Name: name, Value: v})
	}
	return tree.ObjectOf(members...).AppendJSON(nil), "application/json", true, nil
}

// signingInput is an Input that can sign, as the function `sign` asks for it.
type signingInput struct {
	expr.Input
	verifier *Verifier
	secrets  []Secret
}

// Sign implements [expr.Signer].
func (s *signingInput) Sign(text string) (string, error) {
	if s.verifier == nil || len(s.secrets) == 0 {
		return "", ErrNoSecret
	}
	var first error
	for _, secret := range s.secrets {
		signature, err := s.verifier.SignText(text, secret)
		if err == nil {
			return signature, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}
