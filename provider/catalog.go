package provider

import (
	"embed"
	"slices"
	"strings"
)

//go:embed catalog/*.yaml catalog/*/*
var catalogFiles embed.FS

// Catalog returns the names of the providers in the catalogue, sorted.
func Catalog() []string {
	entries, err := catalogFiles.ReadDir("catalog")
	if err != nil { // the folder is embedded
		panic(err)
	}
	var names []string
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), ".yaml"); is && !e.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Builtin returns a provider of the catalogue as it is, without secrets: it reads,
// and Verify rejects whatever needs a secret. An unknown name is an *Errors that
// says what is near.
func Builtin(name string) (*Provider, error) {
	ps := &problems{}
	l := layering{ps: ps}
	root := l.base(name, place{}, "", nil)
	return finish(name, root, inputs{}, ps, true)
}
