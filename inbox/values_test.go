package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
)

func TestAMappingInGoWhoseValuesAreNoJSON(t *testing.T) {
	values := map[string]onceward.Value{
		"fine":         onceward.Int(1),
		"not compact":  onceward.TrustedJSON("{\"a\" : [ 1 ]}"),
		"none":         {},
		"cut off":      onceward.TrustedJSON(`{"a":`),
		"bare word":    onceward.TrustedJSON("wide"),
		"two at once":  onceward.TrustedJSON(`1,"more":2`),
		"not in UTF-8": onceward.TrustedJSON("\"\xff\""),
	}
	s := mapped(t)
	s.Map = func(r *provider.Request) ([]provider.Reading, error) {
		name := string(r.Body)
		part := []onceward.Part{{Field: "size", Value: values[name]}}
		f := onceward.Fact{Rule: "go", Kind: "parcel", Key: name, Status: "sent", Fields: part}
		if was, ok := strings.CutPrefix(name, "was "); ok {
			f.Fields, f.Was = nil, []onceward.Part{{Field: "size", Value: values[was]}}
		}
		if held, ok := strings.CutPrefix(name, "held "); ok {
			f.Fields[0].Value, f.Held = values[held], "not yet"
		}
		return []provider.Reading{{Event: onceward.Event{Key: name}, Facts: []onceward.Fact{f}}}, nil
	}
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true; cfg.Sources["post"] = s })
	for name, want := range map[string]string{
		"fine": `{"size":1}`, "not compact": `{"size":{"a":[1]}}`, "none": `{"size":null}`, "not in UTF-8": "{\"size\":\"\uFFFD\"}",
		"cut off": "", "bare word": "", "two at once": "", "was cut off": "", "held cut off": "",
	} {
		a := w.ok("post", name)
		switch {
		case want == "" && strings.HasPrefix(name, "held"):
			if a.Facts[0].Held != "not yet" {
				t.Errorf("%s: %+v, want its own reason", name, a.Facts[0])
			}
		case want == "":
			if a.Facts[0].Verdict != "held" || !strings.Contains(a.Facts[0].Held, `"size" is no JSON; make it with onceward.JSON`) {
				t.Errorf("%s: %+v, want it held", name, a.Facts[0])
			}
		default:
			if row := w.row("post", "parcel", name); string(row.Data) != want || !json.Valid(row.Data) {
				t.Errorf("%s: the row holds %s, want %s", name, row.Data, want)
			}
		}
	}
}

func TestAPanicOfAMappingIsHeldAsOneLine(t *testing.T) {
	var log *logText
	s := mapped(t)
	s.Map = func(*provider.Request) ([]provider.Reading, error) { panic("a bug\nat " + payload) }
	w := newWorld(t, func(cfg *inbox.Config) { log = logged(cfg); cfg.Development = true; cfg.Sources["post"] = s })
	held := w.ok("post", "{}").Facts[0].Held
	if !strings.HasSuffix(held, "it panicked: panic: a bug") {
		t.Errorf("held as %q", held)
	}
	if !strings.Contains(log.String(), "values_test.go") {
		t.Errorf("the log does not say where it came from:\n%s", log)
	}
	notIn(t, "the log", log.String(), payload)
}
