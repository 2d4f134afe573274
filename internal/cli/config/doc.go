// Package config reads onceward.yaml: where the store is, where to listen, which
// sources there are.
//
// All faults of a file are reported at once as provider.Errors, each with its
// place, what was expected and the likely fix; the keys that describe a sender
// are package provider's and are reported in the same way. A secret is a
// reference ($NAME or file:PATH) and never a text, so the file may be shown,
// committed and printed; no message holds what a reference stands for.
package config

import (
	"net/netip"

	"github.com/onceward/onceward/provider"
)

// DefaultFile is the name that commands look for.
const DefaultFile = "onceward.yaml"

// The defaults of a file's keys.
const (
	DefaultStore  = "sqlite:onceward.db"
	DefaultListen = ":8080"
	DefaultAdmin  = "127.0.0.1:8081"
	// DefaultMaxBody is in bytes.
	DefaultMaxBody = 1 << 20
)

// Config is a file that was read without a fault.
type Config struct {
	// File is its name, as it was given.
	File string
	// Store is sqlite:FILE or postgres://…. StoreFrom is as it stands in the file,
	// where it may be a reference.
	Store, StoreFrom string
	// Listen is the address of the public listener.
	Listen string
	// PublicURL is how senders address it, "" for what each request says.
	PublicURL string
	Admin     Admin
	// TrustedProxies may say where a request came from.
	TrustedProxies []netip.Prefix
	// Sources are in the order of the file.
	Sources []Source
	// Text is the file.
	Text []byte
}

// Admin is the admin listener.
type Admin struct {
	Listen string
	// Token is what the reference gives, "" for none.
	Token string
	// TokenFrom is the reference.
	TokenFrom string
}

// Source is one entry of sources.
type Source struct {
	Name string
	// Path is where its deliveries come in.
	Path string
	// MaxBody is in bytes.
	MaxBody int64
	// SecretsFrom and ParamsFrom are as they stand in the file: references, and for
	// params texts too. Secrets and Params are what they give.
	SecretsFrom []string
	Secrets     []string
	ParamsFrom  map[string]string
	Params      map[string]string
	// Provider is compiled, with the source's keys laid over.
	Provider *provider.Provider
}

// Warnings lists what is not wrong but likely not meant, in the order of the
// file.
func (c *Config) Warnings() []provider.Problem {
	var list []provider.Problem
	for i := range c.Sources {
		list = append(list, c.Sources[i].Provider.Warnings()...)
	}
	return list
}

// Source returns the source of a name, nil if there is none.
func (c *Config) Source(name string) *Source {
	for i := range c.Sources {
		if c.Sources[i].Name == name {
			return &c.Sources[i]
		}
	}
	return nil
}
