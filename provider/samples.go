package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward"
)

// Sample is one delivery of a sender as it may come, with made-up contents: to be
// sent by `onceward send`, and what the catalogue is tested with.
type Sample struct {
	// Provider is the name in the catalogue, Name that of the sample, as
	// 03-charge.succeeded. Names sort in the order in which things happened.
	Provider, Name string
	// Type is the sender's word for what happened, Entity its id of what it is
	// about and Status its status, each "" if there is none.
	Type, Entity, Status string
	Method, URL          string
	Header               http.Header
	// Body is exactly as it is on the wire.
	Body []byte
	// Secret is what it is signed with, "" if that is a private key nobody has.
	// Keys is the sender's published key set then.
	Secret, Keys string
	// Now is when it was made; its signature is valid around this time.
	Now time.Time
}

// Secrets lists what a source needs under `secrets` to accept the sample.
func (s *Sample) Secrets() []string {
	var secrets []string
	for _, text := range []string{s.Secret, s.Keys} {
		if text != "" {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// Request returns the sample as a new Request.
func (s *Sample) Request() *Request {
	return &Request{Method: s.Method, URL: s.URL, Header: s.Header.Clone(), Body: bytes.Clone(s.Body)}
}

// sampleFile is what stands beside the body of a sample.
type sampleFile struct {
	BodyFile  string            `json:"body_file"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Secret    string            `json:"secret"`
	Now       int64             `json:"now"`
	EventType string            `json:"event_type"`
	EntityID  string            `json:"entity_id"`
	Status    string            `json:"status"`
	Headers   map[string]string `json:"headers"`
	Params    struct {
		JWKS json.RawMessage `json:"jwks"`
	} `json:"params"`
}

// Samples returns the samples of a provider of the catalogue, sorted by name; nil
// if there are none.
func Samples(provider string) []Sample {
	dir := path.Join("catalog", provider)
	files, err := catalogFiles.ReadDir(dir)
	if err != nil || !isProviderName(provider) {
		return nil
	}
	var samples []Sample
	for _, f := range files {
		name, is := strings.CutSuffix(f.Name(), ".headers.json")
		if !is {
			continue
		}
		samples = append(samples, readSample(provider, dir, name))
	}
	slices.SortFunc(samples, func(a, b Sample) int { return strings.Compare(a.Name, b.Name) })
	return samples
}

// readSample reads an embedded sample; the tests of this package read each.
func readSample(provider, dir, name string) Sample {
	var file sampleFile
	text, err := catalogFiles.ReadFile(path.Join(dir, name+".headers.json"))
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		panic("embedded sample " + provider + "/" + name + ": " + err.Error())
	}
	body, err := catalogFiles.ReadFile(path.Join(dir, file.BodyFile))
	if err != nil {
		panic("embedded sample " + provider + "/" + name + ": " + err.Error())
	}
	s := Sample{
		Provider: provider, Name: name, Type: file.EventType, Entity: file.EntityID, Status: file.Status,
		Method: file.Method, URL: file.URL, Header: http.Header{}, Body: body,
		Secret: file.Secret, Keys: string(file.Params.JWKS), Now: time.Unix(file.Now, 0).UTC(),
	}
	for key, value := range file.Headers {
		s.Header.Set(key, value)
	}
	return s
}

// Lifecycle returns the samples that tell about one entity of a kind, the one that
// most samples tell about, in the order in which things happened; nil if no sample
// tells about the kind.
func Lifecycle(provider, kind string) []Sample {
	p, err := Builtin(provider)
	if err != nil {
		return nil
	}
	about := map[string][]Sample{}
	var keys []string
	for _, s := range Samples(provider) {
		for _, key := range p.entities(s.Request(), kind) {
			if about[key] == nil {
				keys = append(keys, key)
			}
			about[key] = append(about[key], s)
		}
	}
	var best []Sample
	for _, key := range keys {
		if len(about[key]) > len(best) {
			best = about[key]
		}
	}
	return best
}

// entities lists the keys of a kind that a delivery tells about, each once.
func (p *Provider) entities(r *Request, kind string) []string {
	var keys []string
	for _, reading := range p.Read(r) {
		for _, f := range reading.Facts {
			if f.Held == "" && f.Kind == kind {
				ref := onceward.Ref{Scope: reading.Event.Scope, Kind: f.Kind, Key: f.Key}
				if name := ref.String(); !slices.Contains(keys, name) {
					keys = append(keys, name)
				}
			}
		}
	}
	return keys
}
