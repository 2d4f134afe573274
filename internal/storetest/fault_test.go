package storetest

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"

	"github.com/onceward/onceward"
)

// counting is a store that only counts commits.
type counting struct {
	onceward.Store
	commits int
}

func (c *counting) Commit(_ context.Context, b *onceward.Batch) error {
	c.commits++
	b.Arrivals[0].Outcome = onceward.New
	return nil
}

func TestFaulty(t *testing.T) {
	ctx := context.Background()
	own := errors.New("own")
	for _, tt := range []struct {
		name  string
		fault Fault
		// what the first and the second call give, and how many reach the store
		first, second error
		reach         int
	}{
		{"not applied", Fault{Method: "Commit", Call: 1}, onceward.ErrUnavailable, nil, 1},
		{"applied", Fault{Method: "Commit", Call: 2, Applied: true}, nil, onceward.ErrUnknownOutcome, 2},
		{"an error of the test's", Fault{Method: "Commit", Call: 2, Err: own}, nil, own, 1},
		{"every call", Fault{Method: "Commit"}, onceward.ErrUnavailable, onceward.ErrUnavailable, 0},
		{"another method", Fault{Method: "Claim", Call: 1}, nil, nil, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			below := &counting{}
			f := Faulty(below, tt.fault)
			seen := 0
			f.Before = func(_ context.Context, method string, call int) {
				if seen++; method != "Commit" || call != seen {
					t.Errorf("before %s %d, want Commit %d", method, call, seen)
				}
			}
			b := &onceward.Batch{Arrivals: []*onceward.Arrival{{}}}
			for i, want := range []error{tt.first, tt.second} {
				err := f.Commit(ctx, b)
				if !errors.Is(err, want) || (err == nil) != (b.Arrivals[0].Outcome == onceward.New) {
					t.Errorf("call %d: %v with outcome %v, want %v", i+1, err, b.Arrivals[0].Outcome, want)
				}
			}
			if below.commits != tt.reach || f.Calls("Commit") != 2 {
				t.Errorf("%d of %d calls reach the store, want %d of 2", below.commits, f.Calls("Commit"), tt.reach)
			}
			f.Plan()
			seen = 0
			if err := f.Commit(ctx, b); err != nil || f.Struck() != 0 || f.Calls("Commit") != 1 {
				t.Errorf("without a plan: %v, %d struck, %d calls", err, f.Struck(), f.Calls("Commit"))
			}
		})
	}
}

// TestFaultyCoversStore wants each method of a store to be one that can fail.
func TestFaultyCoversStore(t *testing.T) {
	store := reflect.TypeFor[onceward.Store]()
	for method := range store.Methods() {
		if method.Name == "Lanes" || method.Name == "Close" {
			continue
		}
		f := Faulty(nil, Fault{Method: method.Name})
		args := []reflect.Value{}
		for in := range method.Type.Ins() {
			args = append(args, reflect.Zero(in))
		}
		args[0] = reflect.ValueOf(context.Background())
		if method.Name == "Commit" {
			args[1] = reflect.ValueOf(&onceward.Batch{})
		}
		results := reflect.ValueOf(f).MethodByName(method.Name).Call(args)
		err, _ := reflect.TypeAssert[error](results[len(results)-1])
		if !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("%s: %v, want the planned fault", method.Name, err)
		}
	}
}

var bracketed = regexp.MustCompile(`\[([a-z][a-z0-9-]*(?:,\s+[a-z][a-z0-9-]*)*)\]`)

// TestContractIsProved wants each name in brackets in the contract to be a case
// of the suite, and each case to have one name.
func TestContractIsProved(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../store.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	named := namesIn(file)
	if len(named) < 20 {
		t.Fatalf("the contract names %d cases; it used to name more", len(named))
	}
	have := map[string]bool{}
	for _, c := range cases() {
		if have[c.name] {
			t.Errorf("case %s is there twice", c.name)
		}
		have[c.name] = true
	}
	for name := range named {
		if !have[name] {
			t.Errorf("store.go names [%s], which is no case of the suite", name)
		}
	}
}

func namesIn(file *ast.File) map[string]bool {
	named := map[string]bool{}
	for _, group := range file.Comments {
		for _, m := range bracketed.FindAllStringSubmatch(group.Text(), -1) {
			for _, name := range regexp.MustCompile(`[a-z0-9-]+`).FindAllString(m[1], -1) {
				named[name] = true
			}
		}
	}
	return named
}

// TestNamesIn keeps the check itself honest.
func TestNamesIn(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "// Package x [one-two].\n//\n// See [NewTxn] and [three,\n// four].\npackage x\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"one-two": true, "three": true, "four": true}
	if got := namesIn(file); !reflect.DeepEqual(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
}
