package verify

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// vector is one entry of testdata/vectors.json.
type vector struct {
	Provider, Scheme, Secret, Method, URL string
	Headers                               map[string]string
	Body                                  string
	Params                                json.RawMessage
	Now                                   int64
	Expect, Note                          string
	Response                              *struct {
		Body string
		JSON json.RawMessage
	}
}

func (v vector) param(t *testing.T, name string) string {
	t.Helper()
	var params map[string]json.RawMessage
	if len(v.Params) == 0 {
		return ""
	}
	if err := json.Unmarshal(v.Params, &params); err != nil {
		t.Fatal(err)
	}
	raw := params[name]
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../../testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// setup is how a provider file and a source would say one row of the table.
type setup struct {
	verify    []Config
	secrets   []string // in place of the vector's own
	challenge *ChallengeConfig
	split     string // expression
}

// vectorWaits lists the rows that the language says and this package does not yet
// do, with the word that Compile must answer.
var vectorWaits = map[string]string{
	"twilio twilio-sha1-form": "sortedForm is not there yet: it waits for the catalogue",
}

// vectorCounts are the vectors to accept and to reject, by provider.
var vectorCounts = map[string][2]int{
	"stripe": {3, 6}, "kiwify": {2, 5}, "kiwify-banking": {1, 2}, "hotmart": {2, 2}, "pagarme": {5, 7},
	"standard-webhooks": {6, 9}, "svix": {2, 8}, "replicate": {2, 8}, "openai": {3, 8}, "fal": {2, 5}, "kie": {2, 3},
	"github": {5, 3}, "shopify": {1, 3}, "slack": {3, 4}, "twilio": {3, 2}, "mercadopago": {4, 3}, "paddle": {2, 5},
	"lemonsqueezy": {1, 3}, "razorpay": {2, 3}, "coinbase-commerce": {2, 3}, "linear": {1, 4}, "typeform": {1, 3},
	"intercom": {1, 3}, "meta": {2, 4}, "docusign": {2, 3}, "pagbank": {1, 3}, "mux": {2, 4}, "elevenlabs": {1, 4},
	"calendly": {1, 4}, "zoom": {2, 4}, "square": {2, 5}, "adyen": {2, 2}, "hubspot": {2, 4}, "sendgrid": {1, 2},
	"mailgun": {2, 2}, "braintree": {2, 2}, "paypal": {1, 3}, "gitlab": {2, 6}, "asaas": {2, 2}, "deepgram": {2, 2},
	"assemblyai": {2, 2}, "postmark": {2, 2}, "eduzz": {1, 3}, "monetizze": {2, 1},
}

// noteReasons says which kind of rejection a vector must meet, by its note.
var noteReasons = map[string]Reason{
	"receiver holds a different secret":                                     ReasonDiffers,
	"no signature/credential headers at all":                                ReasonMissing,
	"one value in the body changed after signing":                           ReasonDiffers,
	"correct signature but timestamp older than the tolerance (300 s + 60)": ReasonExpired,
	"rotation: two signatures, none made with the held secret":              ReasonDiffers,
	"tampered body": ReasonDiffers,
	"wrong key":     ReasonDiffers,
	"message id changed: the id is part of the signed content":                                   ReasonDiffers,
	"empty signature value after the version":                                                    ReasonMalformed,
	"unknown version label must be skipped, not trusted":                                         ReasonMalformed,
	"timestamp 6 minutes in the future":                                                          ReasonFuture,
	"re-serialised JSON":                                                                         ReasonDiffers,
	"same JSON value re-serialised (spaces/newlines): raw bytes differ":                          ReasonDiffers,
	"right HMAC but under the v0 label: only v1 counts (downgrade attempt)":                      ReasonMalformed,
	"receiver holds a different token":                                                           ReasonDiffers,
	"no signature parameter":                                                                     ReasonMissing,
	"signature made with an EMPTY key (what Kiwify sends when no token is set): must not verify": ReasonDiffers,
	"misconfigured receiver with an empty token: must refuse although HMAC(empty key) matches":   reasonEmptySecret,
	"delivered to another path than the signed one":                                              ReasonDiffers,
	"hottok in body differs":                                                                     ReasonDiffers,
	"alg other than RS256 must be refused":                                                       ReasonMalformed,
	"tampered form value":                                                                        ReasonDiffers,
	"form re-encoded in another order":                                                           ReasonDiffers,
	"expired":                                                                                    ReasonExpired,
	"JWKS without the signing key":                                                               ReasonDiffers,
	"timestamp older than 300 s":                                                                 ReasonExpired,
	"user id header changed (it is signed)":                                                      ReasonDiffers,
	"no signature headers":                                                                       ReasonMissing,
	"task id in the body changed: that one field is covered":                                     ReasonDiffers,
	"parameters sorted wrongly (ReasonConferenceEnded before Reason)":                            ReasonDiffers,
	"wrong auth token":                                                                           ReasonDiffers,
	"data.id query value changed (it is the signed one, not the body)":                           ReasonDiffers,
	"webhookTimestamp (ms, inside the signed body) older than 60 s":                              ReasonExpired,
	"GET subscription check with a wrong verify token: 403":                                      reasonNoChallenge,
	"correct signature but timestamp older than the tolerance (1800 s + 60)":                     ReasonExpired,
	"correct signature but timestamp older than the tolerance (180 s + 60)":                      ReasonExpired,
	"notification URL differs from the registered one":                                           ReasonDiffers,
	"amount changed":                                             ReasonDiffers,
	"trailing CR LF stripped":                                    ReasonDiffers,
	"timestamp header changed":                                   ReasonDiffers,
	"timestamp too old under a 300 s policy":                     ReasonExpired,
	"payload swapped":                                            ReasonDiffers,
	"no pair for our public key":                                 ReasonMalformed,
	"tampered body (CRC changes)":                                ReasonDiffers,
	"other webhook id configured":                                ReasonDiffers,
	"certificate URL outside paypal.com: refuse before fetching": ReasonRequire,
}

// Two outcomes of vectors that are no Reason: the secret is refused when it is
// parsed, and a GET is not the challenge.
const (
	reasonEmptySecret Reason = "(empty secret)"
	reasonNoChallenge Reason = "(no challenge)"
)

func TestVectors(t *testing.T) {
	counts := map[string][2]int{}
	rows := vectorRows()
	used := map[string]bool{}
	for i, vec := range readVectors(t) {
		row := vec.Provider + " " + vec.Scheme
		build, known := rows[row]
		if !known {
			t.Errorf("vector %d: no row for %s", i, row)
			continue
		}
		used[row] = true
		count := counts[vec.Provider]
		if vec.Expect == "valid" {
			count[0]++
		} else {
			count[1]++
		}
		counts[vec.Provider] = count
		t.Run(row+"/"+vec.Note, func(t *testing.T) {
			s := build(t, vec)
			if word, waits := vectorWaits[row]; waits {
				checkWaits(t, s, word)
				return
			}
			checkVector(t, vec, s)
		})
	}
	for row := range rows {
		if !used[row] {
			t.Errorf("no vector for row %s", row)
		}
	}
	for provider, want := range vectorCounts {
		if counts[provider] != want {
			t.Errorf("%s: %d to accept and %d to reject, want %v", provider, counts[provider][0], counts[provider][1], want)
		}
	}
	if len(counts) != len(vectorCounts) {
		t.Errorf("%d providers, want %d", len(counts), len(vectorCounts))
	}
}

// checkWaits demands that a row that waits is refused at load, with its word.
func checkWaits(t *testing.T, s setup, word string) {
	_, problems := Compile(s.verify, testNames)
	for _, p := range problems {
		if strings.Contains(p.String(), word) {
			return
		}
	}
	t.Errorf("the row waits no longer; problems %v, want one with %q", problems, word)
}

func checkVector(t *testing.T, vec vector, s setup) {
	got, answer := runVector(t, vec, s)
	if vec.Expect == "valid" {
		if got != "" {
			t.Errorf("rejected as %s", got)
		}
		if vec.Response == nil {
			return
		}
		want := vec.Response.Body
		if vec.Response.JSON != nil {
			want = string(vec.Response.JSON)
			if !sameJSON(t, answer, want) {
				t.Errorf("answer %s, want %s", answer, want)
			}
		} else if answer != want {
			t.Errorf("answer %q, want %q", answer, want)
		}
		return
	}
	want, known := noteReasons[vec.Note]
	if !known {
		t.Fatalf("no reason for the note %q", vec.Note)
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// runVector is the reason of the rejection, "" if accepted, and the answer to a
// challenge.
func runVector(t *testing.T, vec vector, s setup) (Reason, string) {
	v := mustCompile(t, s.verify...)
	texts := s.secrets
	if texts == nil && vec.Secret == "" && s.verify[0].Keys == nil && s.verify[0].Scheme != SchemeNone {
		texts = []string{""}
	} else if texts == nil && vec.Secret != "" {
		texts = []string{vec.Secret}
	}
	var secrets []Secret
	for _, text := range texts {
		secret, err := v.ParseSecret(text)
		if errors.Is(err, ErrEmptySecret) {
			return reasonEmptySecret, ""
		} else if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
	}
	r := vectorRequest(t, vec)
	in := newInput(r)
	in.params = vectorParams(t, vec)
	if s.split != "" {
		r.Items = splitter(t, s.split, r, in)
	}
	if vec.Method == http.MethodPost {
		if _, err := v.Verify(time.Unix(vec.Now, 0), r, in, secrets); err != nil {
			t.Log(err)
			return reasonOf(t, err), ""
		}
	}
	if s.challenge == nil {
		return "", ""
	}
	ch, problems := CompileChallenge(*s.challenge, testNames, v)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	body, _, ok, err := ch.Answer(vec.Method, in, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return reasonNoChallenge, ""
	}
	return "", string(body)
}

func vectorRequest(t *testing.T, vec vector) *Request {
	t.Helper()
	u, err := url.Parse(vec.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: vec.Method, URL: vec.URL, Header: http.Header{}, Query: u.Query(), Raw: []byte(vec.Body)}
	for name, value := range vec.Headers {
		r.Header.Set(name, value)
	}
	return r
}

// vectorParams are the params a source would set: those of the vector, and for
// Meta's handshake the token that the vector calls its secret.
func vectorParams(t *testing.T, vec vector) tree.Value {
	t.Helper()
	members := []tree.Member{{Name: "verify_token", Value: tree.StringOf(vec.Secret)}}
	if len(vec.Params) > 0 {
		doc, err := tree.Parse(vec.Params)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range doc.Root.Members() {
			members = append(members, tree.Member{Name: name, Value: value})
		}
	}
	return tree.ObjectOf(members...)
}

// splitter evaluates `split` when first asked, as the provider package does.
func splitter(t *testing.T, split string, r *Request, whole *testInput) func() ([]expr.Input, error) {
	prog, err := expr.Compile(split, testNames)
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]expr.Input, error) {
		list, err := prog.Eval(whole)
		if err != nil {
			return nil, err
		}
		var items []expr.Input
		for item := range list.Elements() {
			in := newInput(r)
			in.params, in.item = whole.params, &item
			items = append(items, in)
		}
		return items, nil
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := tree.Parse([]byte(a))
	if err != nil {
		t.Fatal(err)
	}
	y, err := tree.Parse([]byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return tree.Equal(x.Root, y.Root)
}
