package cases

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fieldCase is one case. Every key of its file is known here or reported by
// readCase as unknown.
type fieldCase struct {
	ID       string            `json:"id"`
	Slug     string            `json:"slug"`
	Title    string            `json:"title"`
	Source   string            `json:"source"`
	Also     json.RawMessage   `json:"also"`
	Kind     string            `json:"kind"`
	Theme    string            `json:"theme"`
	Provider string            `json:"provider"`
	RankRule string            `json:"rank_rule"`
	Needs    []string          `json:"needs"`
	Derived  json.RawMessage   `json:"derived"`
	Setup    setup             `json:"setup"`
	Told     []json.RawMessage `json:"steps"`
	Expect   expectation       `json:"expect"`

	Steps   []step   `json:"-"`
	Unknown []string `json:"-"` // keys and forms that are not known here
	text    []byte   // of the file
	file    string   // its name without the ending
}

type setup struct {
	Secrets       map[string]string            `json:"secrets"`
	Config        map[string]json.RawMessage   `json:"config"`
	Dedupe        json.RawMessage              `json:"dedupe"`
	StubFetch     map[string][]json.RawMessage `json:"stub_fetch"`
	StubVerify    json.RawMessage              `json:"stub_verify"`
	HandlerDelay  int64                        `json:"handler_delay_ms"`
	FailHandler   int                          `json:"fail_handler"`
	FailEffect    json.RawMessage              `json:"fail_effect"`
	EffectDelayMS int64                        `json:"effect_delay_ms"`
}

// step is a delivery, or something done to the system if Op is set.
type step struct {
	AtMS     int64  `json:"at_ms"`
	Op       string `json:"op"`
	delivery `json:"-"`
	args     `json:"-"`
}

// delivery is a request as the case tells it.
type delivery struct {
	Group        any                        `json:"parallel_group"`
	Method       string                     `json:"method"`
	Path         string                     `json:"path"`
	Sign         *signing                   `json:"sign"`
	Headers      map[string]json.RawMessage `json:"headers"`
	Body         *string                    `json:"body"`
	BodyB64      *string                    `json:"body_b64"`
	BodyGen      *bodyGen                   `json:"body_gen"`
	ChunksB64    []string                   `json:"chunks_b64"`
	SplitHeader  bool                       `json:"split_signature_header"`
	Transfer     string                     `json:"transfer"`
	HTTPVersion  string                     `json:"http_version"`
	Trailers     map[string]string          `json:"trailers"`
	WaitFor100   bool                       `json:"wait_for_100"`
	DeclaredOnly bool                       `json:"declare_only"`
}

type bodyGen struct {
	Prefix string `json:"prefix"`
	Fill   string `json:"fill"`
	Count  int    `json:"count"`
	Suffix string `json:"suffix"`
}

// signing says how the signature of a delivery is made.
type signing struct {
	Scheme     string          `json:"scheme"`
	Secret     string          `json:"secret"`
	Secrets    []string        `json:"secrets"`
	SecretUsed *string         `json:"secret_used"`
	OffsetS    int64           `json:"t_offset_s"`
	RawTime    json.RawMessage `json:"t_raw"`
	Over       *string         `json:"over"`
	OverB64    *string         `json:"over_b64"`
	Manifest   string          `json:"manifest"`
	URL        string          `json:"url"`
	Corrupt    bool            `json:"corrupt"`
}

// args are those of an op; which ones it has is in the table ops.
type args struct {
	MS            int64                      `json:"ms"`
	Count         int                        `json:"count"`
	Name          string                     `json:"name"`
	Point         string                     `json:"point"`
	Table         string                     `json:"table"`
	Row           map[string]json.RawMessage `json:"row"`
	CommitAfterMS int64                      `json:"commit_after_ms"`
	Result        string                     `json:"result"`
	Provider      string                     `json:"provider"`
	Items         []json.RawMessage          `json:"items"`
	Effects       any                        `json:"effects"`
	Type          string                     `json:"type"`
	Event         string                     `json:"event"`
}

// ops says which arguments each op has.
var ops = map[string][]string{
	"restart_all": nil, "kill_9": nil, "arm_crash": {"point"},
	"pause_workers": nil, "resume_workers": nil, "advance_clock": {"ms"},
	"store_down": nil, "store_up": nil, "fail_next_store_write": {"count"},
	"retire_secret": {"name"}, "local_write": {"table", "row"}, "local_tx_begin": {"table", "row", "commit_after_ms"},
	"stub_verify": {"result"}, "import_batch": {"provider", "items", "effects"},
	"deploy_handler": {"type"}, "run_unhandled": nil, "reprocess": {"event"},
	"snapshot_tables": nil, "rebuild": nil, "compare_tables": nil,
}

// expectation is what must be true in the end.
type expectation struct {
	HTTP        []string         `json:"http"`
	Stored      json.RawMessage  `json:"events_stored"`
	Entity      wantedRow        `json:"entity"`
	Entities    []wantedRow      `json:"entities"`
	Effects     map[string]any   `json:"side_effects"`
	Report      []wantedRow      `json:"report"`
	MaxAckMS    int64            `json:"max_ack_ms"`
	MaxWaitMS   map[string]int64 `json:"max_wait_ms"`
	Rejected    any              `json:"rejected"`
	Quarantined any              `json:"quarantined"`
	Dead        any              `json:"dead"`
	Deliveries  any              `json:"deliveries_logged"`
	Repeat      int              `json:"repeat"`
	Notes       json.RawMessage  `json:"notes"`
}

// wantedRow is a row as a case tells it; numbers keep their digits.
type wantedRow map[string]any

func (w *wantedRow) UnmarshalJSON(text []byte) error {
	var m map[string]any
	if err := decodeExact(text, &m); err != nil {
		return err
	}
	*w = m
	return nil
}

func decodeExact(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// readCases reads all cases of a folder, sorted by name.
func readCases(dir string) ([]*fieldCase, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no case in %s; a case is a .json file", dir)
	}
	slices.Sort(files)
	var all []*fieldCase
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c, err := readCase(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Base(file), err))
			continue
		}
		c.file = strings.TrimSuffix(filepath.Base(file), ".json")
		if c.ID == "" {
			c.ID = c.file
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

// readCase reads one case. What it does not know is in Unknown.
func readCase(text []byte) (*fieldCase, error) {
	c := &fieldCase{text: text}
	if err := decodeExact(text, c); err != nil {
		return nil, fmt.Errorf("this is no case: %w", err)
	}
	note := func(where string, raw json.RawMessage, known ...any) {
		for _, name := range unknownKeys(raw, known...) {
			c.Unknown = append(c.Unknown, fmt.Sprintf("key %s%s", where, name))
		}
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	note("", text, fieldCase{})
	note("setup.", parts["setup"], setup{})
	note("expect.", parts["expect"], expectation{})
	for i, raw := range c.Told {
		where := fmt.Sprintf("steps[%d].", i)
		s, err := readStep(raw)
		if err != nil {
			return nil, fmt.Errorf("%s %w", where, err)
		}
		c.Steps = append(c.Steps, s)
		names, known := ops[s.Op]
		switch {
		case s.Op == "":
			note(where, raw, step{}, delivery{})
			var d map[string]json.RawMessage
			if err := json.Unmarshal(raw, &d); err != nil {
				return nil, err
			}
			note(where+"sign.", d["sign"], signing{})
			note(where+"body_gen.", d["body_gen"], bodyGen{})
		case !known:
			c.Unknown = append(c.Unknown, "op "+s.Op)
		default:
			for _, name := range unknownKeys(raw, step{}) {
				if !slices.Contains(names, name) {
					c.Unknown = append(c.Unknown, fmt.Sprintf("key %s%s of op %s", where, name, s.Op))
				}
			}
		}
	}
	return c, nil
}

func readStep(raw json.RawMessage) (step, error) {
	var s step
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, err
	}
	if s.Op != "" {
		return s, json.Unmarshal(raw, &s.args)
	}
	return s, json.Unmarshal(raw, &s.delivery)
}

// unknownKeys lists the keys of a JSON object that none of some structs has.
func unknownKeys(raw json.RawMessage, known ...any) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil // not there, or not an object, which decoding has refused
	}
	for _, s := range known {
		for f := range reflect.TypeOf(s).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			delete(members, name)
		}
	}
	return slices.Sorted(maps.Keys(members))
}

// bytes returns the body that goes over the wire.
func (d *delivery) bytes() ([]byte, error) {
	switch {
	case len(d.ChunksB64) > 0:
		chunks, err := d.chunks()
		return bytes.Join(chunks, nil), err
	case d.BodyB64 != nil:
		return base64.StdEncoding.DecodeString(*d.BodyB64)
	case d.BodyGen != nil:
		return []byte(d.BodyGen.Prefix + strings.Repeat(d.BodyGen.Fill, d.BodyGen.Count) + d.BodyGen.Suffix), nil
	case d.Body != nil:
		return []byte(*d.Body), nil
	}
	return nil, nil
}

// chunks returns the pieces in which the body goes over the wire, nil if their
// borders are nobody's business.
func (d *delivery) chunks() ([][]byte, error) {
	var out [][]byte
	for _, text := range d.ChunksB64 {
		chunk, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		out = append(out, chunk)
	}
	return out, nil
}

// header returns the values of each header in the order of their names.
func (d *delivery) header() ([]headerLine, error) {
	var lines []headerLine
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		var one string
		var many []string
		if json.Unmarshal(d.Headers[name], &one) == nil {
			many = []string{one}
		} else if err := json.Unmarshal(d.Headers[name], &many); err != nil {
			return nil, fmt.Errorf("the header %s is neither a text nor a list of texts", name)
		}
		for _, value := range many {
			lines = append(lines, headerLine{name, value})
		}
	}
	return lines, nil
}

type headerLine struct{ name, value string }

// group names the deliveries that start at once, "" if this one does not.
func (d *delivery) group() string {
	if d.Group == nil {
		return ""
	}
	return fmt.Sprint(d.Group)
}

// endpoint returns the provider and, where a path goes on behind it, what tells
// two sources of one provider apart: /in/github/app1 is github and app1.
func (d *delivery) endpoint() (provider, rest string, ok bool) {
	path, _, _ := strings.Cut(d.Path, "?")
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(parts) < 2 || parts[0] != "in" {
		return "", "", false
	}
	return parts[1], strings.Join(parts[2:], "-"), true
}

// count is a number or a range of them, as "2..3".
type count struct{ low, high int64 }

func (n count) has(got int64) bool { return n.low <= got && got <= n.high }

func (n count) String() string {
	if n.low == n.high {
		return strconv.FormatInt(n.low, 10)
	}
	return fmt.Sprintf("%d..%d", n.low, n.high)
}

// readCount reads 3, "3" or "2..3".
func readCount(v any) (count, error) {
	text := strings.Trim(fmt.Sprint(v), `"`)
	if raw, ok := v.(json.RawMessage); ok {
		text = strings.Trim(string(raw), `"`)
	}
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	a, err := strconv.ParseInt(strings.TrimSpace(low), 10, 64)
	b, err2 := strconv.ParseInt(strings.TrimSpace(high), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return count{}, fmt.Errorf("%q is no number and no range as 2..3", text)
	}
	return count{a, b}, nil
}
