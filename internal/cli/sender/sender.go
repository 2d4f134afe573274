// Package sender sends signed deliveries over HTTP as a provider does: each is
// signed when it is sent, and an answer may get lost on the way back.
package sender

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/server/v1"
	"github.com/onceward/onceward/provider"
)

// Delivery is one request to be signed and sent.
type Delivery struct {
	// Provider signs, with Signing, or if that is "" with its own first secret.
	Provider *provider.Provider
	Signing  string
	// To is the address that the sender was given. SignedAs is the one that it
	// signs where the two differ, as in front of a proxy; "" for To.
	To, SignedAs string
	Header       http.Header
	Body         []byte
}

// Answer is what a sender gets back. Where the answer was lost, Lost is set and
// nothing else.
type Answer struct {
	Status  int
	Outcome string // new, duplicate, conflict; "" if the answer does not say
	// Facts are what became of the entities, which only a server in development
	// mode tells.
	Facts []Fact
	// Events are the events of the delivery that the answer names.
	Events []Event
	// Reason and Quarantine say, in development mode, why a delivery was rejected
	// and where it is kept.
	Reason, Quarantine string
	Lost               bool
}

// Event is one event of a delivery; its Facts are there only in development mode.
type Event struct {
	ID      string `json:"event"`
	Outcome string `json:"outcome"`
	Facts   []Fact `json:"facts"`
}

// Fact is what a delivery said about one entity. Held says why it could not be
// computed, "" if it could.
type Fact struct {
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Verdict string `json:"verdict"`
	Status  string `json:"status"`
	Version int64  `json:"version"`
	Held    string `json:"held"`
}

// Client sends deliveries. Its methods are safe for concurrent use.
type Client struct {
	// HTTP makes the requests; redirects should not be followed, as senders do not.
	HTTP *http.Client
	// Now is when deliveries are signed.
	Now func() time.Time
}

// New returns a client with up to connections of them to one server.
func New(connections int, now func() time.Time) *Client {
	return &Client{Now: now, HTTP: &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections,
			IdleConnTimeout: time.Minute,
		},
	}}
}

// Close ends the idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// request signs the delivery as of now and makes its request.
func (c *Client) request(ctx context.Context, d *Delivery) (*http.Request, error) {
	r := &provider.Request{Method: http.MethodPost, URL: d.To, Header: d.Header.Clone(), Body: d.Body}
	if d.SignedAs != "" {
		r.URL = d.SignedAs
	}
	signedAs := r.URL
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if err := d.Provider.Sign(c.Now(), r, d.Signing); err != nil {
		return nil, err
	}
	to := d.To
	if r.URL != signedAs { // the signature travels in the query
		var err error
		if to, err = withQuery(to, r.URL); err != nil {
			return nil, err
		}
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	out.Header = r.Header
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", "onceward-send")
	}
	return out, nil
}

// withQuery returns the address with the query of another.
func withQuery(to, from string) (string, error) {
	target, err := url.Parse(to)
	if err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	signed, err := url.Parse(from)
	if err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	target.RawQuery = signed.RawQuery
	return target.String(), nil
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// Send signs and sends a delivery and reads the answer. An answer of any status is
// no error.
func (c *Client) Send(ctx context.Context, d *Delivery) (Answer, error) {
	req, err := c.request(ctx, d)
	if err != nil {
		return Answer{}, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("send: %w", withoutAddress(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return Answer{}, fmt.Errorf("send: read the answer: %w", err)
	}
	return parse(resp.StatusCode, body), nil
}

// withoutAddress leaves out the address, whose query may hold a token.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// parse reads what an answer says, as far as it says anything.
func parse(status int, body []byte) Answer {
	a := Answer{Status: status}
	var told struct {
		Event
		Events     []Event `json:"events"`
		Reason     string  `json:"detail"`
		Quarantine string  `json:"quarantine"`
	}
	if json.Unmarshal(body, &told) != nil {
		return a // the provider's own ack body
	}
	a.Outcome, a.Reason, a.Quarantine, a.Events = told.Outcome, told.Reason, told.Quarantine, told.Events
	if told.ID != "" {
		a.Events = append(a.Events, told.Event)
	}
	for _, e := range a.Events {
		a.Facts = append(a.Facts, e.Facts...)
	}
	return a
}

// SendAndLose signs and sends a delivery over a connection of its own, waits until
// the answer begins to come back and cuts the connection without reading it, as
// when a proxy gives up: the server has answered, the sender does not know.
func (c *Client) SendAndLose(ctx context.Context, d *Delivery) (Answer, error) {
	req, err := c.request(ctx, d)
	if err != nil {
		return Answer{}, err
	}
	host := req.URL.Host
	if req.URL.Port() == "" {
		host = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return Answer{}, fmt.Errorf("send: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := req.Write(conn); err != nil {
		return Answer{}, fmt.Errorf("send: %w", err)
	}
	if _, err := bufio.NewReaderSize(conn, 16).Peek(1); err != nil {
		return Answer{}, fmt.Errorf("send: wait for the answer: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a cut, not a farewell
	}
	return Answer{Lost: true}, nil
}

// Register puts an entity, as an application does that has just started a job.
// admin is the address of the admin listener.
func (c *Client) Register(ctx context.Context, admin, token string, ref onceward.Ref, local map[string]onceward.Value, key string) (*v1.Registered, error) {
	body, err := json.Marshal(map[string]any{"local": local})
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	address := fmt.Sprintf("%s/v1/entities/%s/%s/%s", admin, url.PathEscape(ref.Source), url.PathEscape(ref.Kind), url.PathEscape(ref.Key))
	if s := ref.Scope.String(); s != "" {
		address += "?scope=" + url.QueryEscape(s)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		var told v1.Error
		_ = json.Unmarshal(answer, &told) // what cannot be read says nothing
		return nil, fmt.Errorf("register: %d %s", resp.StatusCode, told.Error)
	}
	out := &v1.Registered{}
	if err := json.Unmarshal(answer, out); err != nil {
		return nil, fmt.Errorf("register: read the answer: %w", err)
	}
	return out, nil
}
