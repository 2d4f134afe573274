package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/committer"
	"github.com/onceward/onceward/provider"
)

// What senders are told when they are not acknowledged. The texts are constant:
// details are in the log, in the quarantine, and in answers of the development
// mode.
const (
	textUnknown  = `{"error":"there is no such source here"}`
	textRejected = `{"error":"the delivery could not be verified"}`
	textTooLarge = `{"error":"the body is too large"}`
	textCutOff   = `{"error":"the body was cut off"}`
	textLater    = `{"error":"not now; deliver it again later"}`
	textOurs     = `{"error":"the fault is ours; deliver it again later"}`
)

// longestRetry is the most seconds that a sender is asked to wait. The wait is
// random, so that senders do not come back all at once.
const longestRetry = 3

func refuse(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, []byte(text))
}

func refuseLater(w http.ResponseWriter, in *Inbox) {
	wait := in.chance.upTo(longestRetry * time.Second)
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	refuse(w, http.StatusServiceUnavailable, textLater)
}

// write sends an answer. An error is the sender's going away.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header() // whose names are written as Set would write them
	values := []string{strconv.Itoa(len(body)), "nosniff", contentType}
	h["Content-Length"], h["X-Content-Type-Options"] = values[0:1:1], values[1:2:2]
	if contentType != "" {
		h["Content-Type"] = values[2:3:3]
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	write(w, status, "application/json", body)
}

func writeAnswer(w http.ResponseWriter, a *provider.Answer) {
	write(w, http.StatusOK, a.ContentType, a.Body)
}

// acknowledge writes the 200: what the sender wants to read, else the small JSON.
func (d *delivery) acknowledge(w http.ResponseWriter, results []committer.Result) {
	if ack := d.source.ack; ack != nil {
		contentType := "text/plain; charset=utf-8"
		if json.Valid(ack) && bytes.HasPrefix(ack, []byte("{")) {
			contentType = "application/json"
		}
		write(w, http.StatusOK, contentType, ack)
		return
	}
	development := d.in.cfg.Development
	if len(results) == 1 {
		writeJSON(w, http.StatusOK, append(appendResult(make([]byte, 0, 96), &results[0], development), '\n'))
		return
	}
	b := []byte(`{"events":[`)
	worst := onceward.Duplicate
	for i := range results {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResult(b, &results[i], development)
		if o := results[i].Outcome; o == onceward.Conflict || o == onceward.New && worst != onceward.Conflict {
			worst = o
		}
	}
	b = append(b, `],"outcome":"`...)
	b = append(b, worst.String()...)
	writeJSON(w, http.StatusOK, append(b, "\"}\n"...))
}

// appendResult writes {"event": "…", "outcome": "…"}, and the facts for a
// developer.
func appendResult(b []byte, r *committer.Result, facts bool) []byte {
	b = append(b, `{"event":"`...)
	b = strconv.AppendInt(b, r.StoredID, 10)
	b = append(b, `","outcome":"`...)
	b = append(b, r.Outcome.String()...)
	b = append(b, '"')
	if facts && len(r.Facts) > 0 {
		b = append(append(b, `,"facts":`...), factsJSON(r.Facts)...)
	}
	return append(b, '}')
}

func factsJSON(facts []onceward.FactResult) []byte {
	type fact struct {
		Kind    string `json:"kind,omitempty"`
		Key     string `json:"key,omitempty"`
		Verdict string `json:"verdict"`
		Status  string `json:"status,omitempty"`
		Version int64  `json:"version,omitempty"`
		Held    string `json:"held,omitempty"`
	}
	list := make([]fact, len(facts))
	for i, f := range facts {
		list[i] = fact{f.Ref.Kind, f.Ref.Key, f.Verdict.String(), f.Status, f.Version, f.Held}
	}
	return marshal(list)
}

// marshal writes texts and numbers, which always can be.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// explain answers a rejected delivery in development mode: why, and where it is
// kept.
func (d *delivery) explain(w http.ResponseWriter, err error, id int64) {
	answer := struct {
		Error      string `json:"error"`
		Reason     string `json:"reason,omitempty"`
		Detail     string `json:"detail"`
		Quarantine string `json:"quarantine,omitempty"`
	}{Error: "the delivery could not be verified", Detail: err.Error()}
	if rejected, ok := errors.AsType[*provider.Rejected](err); ok {
		answer.Reason, answer.Detail = string(rejected.Reason), rejected.Detail
	}
	if id != 0 {
		answer.Quarantine = "q" + strconv.FormatInt(id, 10)
	}
	writeJSON(w, http.StatusUnauthorized, append(marshal(answer), '\n'))
}
