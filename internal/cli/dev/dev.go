// Package dev keeps the secrets of the development mode: one for each provider of
// the catalogue, made up once and kept beside the database, so that `onceward
// serve` accepts what `onceward send` signs. They protect nothing but a toy.
package dev

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onceward/onceward/provider"
)

// File is the name of the file, in the folder of the database.
const File = "onceward.dev.json"

// Secret is what one provider is verified and signed with.
type Secret struct {
	// Listed is what the server verifies with, Signing what the sender signs with:
	// for a key pair the public and the private half.
	Listed  string `json:"listed,omitempty"`
	Signing string `json:"signing,omitempty"`
	// Params are made-up values of required params.
	Params map[string]string `json:"params,omitempty"`
}

// Secrets maps providers to their secrets.
type Secrets map[string]Secret

type document struct {
	About   string  `json:"about"`
	Secrets Secrets `json:"secrets"`
}

const about = "Made-up secrets of onceward's development mode. Nobody else needs this file; it may be deleted."

// PathFor returns where the secrets of a store are: beside an SQLite file, else in
// the working directory.
func PathFor(store string) string {
	path, isFile := strings.CutPrefix(store, "sqlite:")
	if !isFile {
		return File
	}
	return filepath.Join(filepath.Dir(path), File)
}

// Load reads the file; one that is not there holds no secrets.
func Load(path string) (Secrets, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Secrets{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the development secrets: %w", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s is damaged; delete it, and new secrets are made up", path)
	}
	if d.Secrets == nil {
		d.Secrets = Secrets{}
	}
	return d.Secrets, nil
}

// Ensure reads the file, makes up what is missing for the providers named, and
// writes it if something was. It is readable by its owner alone. A provider that
// nobody could sign for is left out.
func Ensure(path string, names []string, random io.Reader) (Secrets, error) {
	secrets, err := Load(path)
	if err != nil {
		return nil, err
	}
	added := false
	for _, name := range names {
		if _, known := secrets[name]; known {
			continue
		}
		p, err := provider.Builtin(name)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", name, err)
		}
		s, err := invent(p, random)
		if errors.Is(err, provider.ErrNotSignable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		secrets[name], added = s, true
	}
	if !added {
		return secrets, nil
	}
	return secrets, write(path, secrets)
}

// invent makes up what a source of this provider needs.
func invent(p *provider.Provider, random io.Reader) (Secret, error) {
	made, err := p.GenerateSecret(random)
	if err != nil {
		return Secret{}, err
	}
	s := Secret{Listed: made.Listed, Signing: made.Signing}
	for _, param := range p.Params() {
		if !param.Required {
			continue
		}
		var b [8]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return Secret{}, fmt.Errorf("make up param %s: %w", param.Name, err)
		}
		if s.Params == nil {
			s.Params = map[string]string{}
		}
		s.Params[param.Name] = "dev" + hex.EncodeToString(b[:])
	}
	return s, nil
}

// write replaces the file in one step, so that no reader sees half of it.
func write(path string, secrets Secrets) (err error) {
	text, err := json.MarshalIndent(document{About: about, Secrets: secrets}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the development secrets: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), File+".*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("write the development secrets: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the development secrets: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Source compiles a source that accepts what the development secret signs. more
// are further secrets that are live beside it.
func (s Secrets) Source(name string, more ...string) (*provider.Provider, error) {
	secret, known := s[name]
	if !known {
		return nil, fmt.Errorf("there is no development secret for %s; start `onceward serve` here first, or give --secret", name)
	}
	var listed []string
	if secret.Listed != "" {
		listed = append(listed, secret.Listed)
	}
	return provider.Compile(provider.SourceConfig{
		Name: name, Provider: name, Secrets: append(listed, more...), Params: secret.Params,
	})
}
