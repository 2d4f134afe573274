package config

import (
	"encoding/json"
	"slices"
)

// schema is the part of JSON Schema that is used here.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  any                `json:"additionalProperties,omitempty"`
	Names       *schema            `json:"propertyNames,omitempty"`
	Required    []string           `json:"required,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`
}

// Schema returns the JSON Schema of onceward.yaml. It checks shapes and names;
// what an expression means, `onceward check` says.
func Schema() []byte {
	root := object("Configuration of onceward", described(Keys(), map[string]*schema{
		"admin":           object("", described(AdminKeys(), nil)),
		"trusted_proxies": list(text("")),
		"sources":         {Type: "object", Names: &schema{Pattern: "^[a-z0-9-]+$"}, Additional: &schema{Ref: "#/$defs/source"}},
		"destinations":    {Type: "object"},
	}))
	root.Schema, root.ID = "https://json-schema.org/draft/2020-12/schema", "https://onceward.dev/schema/onceward.yaml.json"
	own := described(SourceKeys(), map[string]*schema{
		"secrets":  list(&schema{Type: "string", Pattern: `^(\$[A-Za-z_][A-Za-z0-9_]*|file:.+)$`}),
		"params":   {Type: "object", Additional: text("")},
		"max_body": {Type: []string{"string", "integer"}},
	})
	for name, s := range providerKeys() {
		if own[name] == nil {
			own[name] = s
		}
	}
	root.Defs = map[string]*schema{
		"source": object("An inbound endpoint; keys beside provider are laid over it", own),
		"expression": {Type: []string{"string", "number", "boolean", "null"},
			Description: "a path as body.data.id, or CEL; see the catalogue's language"},
		"verify": object("How a delivery is known to be the sender's", verifyKeys()),
		"kind":   object("States, lowest rank first, and how facts are ordered", kindKeys()),
		"fact":   object("How an event becomes a fact about one entity", factKeys()),
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // a tree of texts always marshals
		panic(err)
	}
	return append(text, '\n')
}

func object(about string, properties map[string]*schema) *schema {
	return &schema{Type: "object", Description: about, Properties: properties, Additional: false}
}

func text(about string) *schema { return &schema{Type: "string", Description: about} }

func list(items *schema) *schema { return &schema{Type: "array", Items: items} }

func words(about string, of ...string) *schema {
	return &schema{Type: "string", Description: about, Enum: of}
}

func expression(about string) *schema {
	return &schema{Description: about, Ref: "#/$defs/expression"}
}

func oneOrList(about string, of *schema) *schema {
	return &schema{Description: about, AnyOf: []*schema{of, list(of)}}
}

func mapOf(about string, of *schema) *schema {
	return &schema{Type: "object", Description: about, Additional: of}
}

// orNone lets `none` stand for a value, which takes an entry away.
func orNone(of *schema) *schema {
	return &schema{AnyOf: []*schema{of, {Type: "string", Enum: []string{"none"}}}}
}

// described gives the keys of a table their descriptions; shapes that are no text
// are given beside it.
func described(keys []Key, shapes map[string]*schema) map[string]*schema {
	out := map[string]*schema{}
	for _, k := range keys {
		s := shapes[k.Name]
		if s == nil {
			s = text("")
		}
		s.Description = k.About
		if s.Type == "string" && k.Default != "" && !slices.Contains([]string{"none", "/in/NAME", "the request's"}, k.Default) {
			s.Default = k.Default
		}
		out[k.Name] = s
	}
	return out
}

// providerKeys are those of a provider file.
func providerKeys() map[string]*schema {
	return map[string]*schema{
		"provider": text("what this starts from: a name of the catalogue, or a file as ./acme.yaml"),
		"title":    text("for people"),
		"docs":     oneOrList("for people", text("")),
		"params": mapOf("what a source may or must supply", object("", map[string]*schema{
			"required": {Type: "boolean"}, "secret": {Type: "boolean"}, "about": text(""),
		})),
		"verify": oneOrList("how a delivery is known to be the sender's; a list accepts when one entry accepts", &schema{Ref: "#/$defs/verify"}),
		"challenge": object("handshakes", map[string]*schema{
			"method": text("default POST"), "when": expression("whether it is one"), "text": expression("the answer"),
			"json": mapOf("the answer", &schema{Ref: "#/$defs/expression"}),
		}),
		"unwrap": text("the field of a form that holds JSON"),
		"split":  expression("a list, one event per element, read as item"),
		"let":    mapOf("names for expressions", orNone(&schema{Ref: "#/$defs/expression"})),
		"event": object("the identity of an event", map[string]*schema{
			"key": oneOrList("what makes it the same event", &schema{Ref: "#/$defs/expression"}), "type": expression("the sender's word for what happened"),
			"time":  expression("the sender's time"),
			"scope": object("account and live or test mode", map[string]*schema{"account": expression(""), "mode": expression("")}),
			"was":   object("where the sender tells former values", map[string]*schema{"at": expression(""), "values": expression("")}),
		}),
		"kinds": mapOf("what the facts are about", orNone(&schema{Ref: "#/$defs/kind"})),
		"facts": mapOf("rules by name", orNone(&schema{Ref: "#/$defs/fact"})),
		"ack":   text("the body this sender wants with the 200"),
		"notes": mapOf("for people", text("")),
		"fetch": {Description: "waits for the catalogue"},
	}
}

func verifyKeys() map[string]*schema {
	return map[string]*schema{
		"scheme":    words("", "hmac", "hash", "ed25519", "ecdsa", "rsa", "token", "basic", "standard-webhooks", "none"),
		"header":    text("the header with the signature or token"),
		"query":     text("the query parameter with it"),
		"field":     expression("the member of the body with it"),
		"format":    text("how it is written: sha256={signature}"),
		"separator": text("between its pieces"),
		"signed":    oneOrList("what is signed: {timestamp}.{raw}; a list gives alternatives", text("")),
		"timestamp": expression("when it was signed"),
		"tolerance": text("how old or early it may be, as 5m; 0s is no check"),
		"hash":      words("", "sha1", "sha256", "sha512"),
		"encoding":  words("of the signature", "hex", "base64", "base64url"),
		"secret_as": words("of the secret", "text", "hex", "sha1"),
		"keys": object("published keys", map[string]*schema{
			"jwks": text(""), "published": {}, "certificate": expression(""), "hosts": oneOrList("", text("")),
		}),
		"require": expression("must hold as well, after the signature"),
		"prefix":  text("of the headers, with standard-webhooks"),
	}
}

func kindKeys() map[string]*schema {
	return map[string]*schema{
		"states":   list(oneOrList("", text(""))),
		"terminal": oneOrList("states this sender never moves on from", text("")),
		"order":    list(words("", "sequence", "time", "rank")),
		"derive":   {Type: "object", Description: "fields and a status computed from the folded fields"},
	}
}

func factKeys() map[string]*schema {
	return map[string]*schema{
		"types":    oneOrList("event types; * is any run of characters, a leading ! excludes", text("")),
		"when":     expression("a further condition"),
		"each":     mapOf("one fact for each element of a list, read under this name", &schema{Ref: "#/$defs/expression"}),
		"kind":     text("the kind of entity"),
		"key":      oneOrList("the entity's key", &schema{Ref: "#/$defs/expression"}),
		"status":   {Type: []string{"string", "object"}, Description: "a state, an expression, or a map from states to the sender's words"},
		"time":     expression("this fact's time"),
		"sequence": expression("this fact's version number"),
		"epoch":    expression("the attempt or period it is about"),
		"hint":     expression("it may be an old copy, which never overwrites"),
		"fields":   {Type: "object", Description: "what else it tells: an expression, or {max|sum|map: expression, by: expression}"},
	}
}
