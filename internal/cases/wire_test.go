package cases

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is what a sender gets back.
type answer struct {
	// reset says that the connection ended without an answer.
	reset  bool
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

func (a answer) String() string {
	if a.reset {
		return "conn_reset"
	}
	return strconv.Itoa(a.status)
}

// wirePatience bounds one exchange.
const wirePatience = 60 * time.Second

// wire speaks HTTP/1 on one connection at a time, byte for byte as a case says,
// which no client of the standard library would. It is for one goroutine.
type wire struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is lost: every answer was read
		w.conn = nil
	}
}

// request is one that is ready to be sent.
type request struct {
	*delivery
	path    string
	headers []headerLine
	body    []byte
	chunks  [][]byte
}

// prepare signs a delivery. prefix is put before its path.
func prepare(d *delivery, s *signer) (*request, error) {
	body, err := d.bytes()
	if err != nil {
		return nil, err
	}
	headers, err := d.header()
	if err != nil {
		return nil, err
	}
	chunks, err := d.chunks()
	if err != nil {
		return nil, err
	}
	told := &sent{method: d.Method, path: d.Path, headers: headers, body: body, sign: d.Sign}
	if err := s.fill(told); err != nil {
		return nil, err
	}
	if d.SplitHeader {
		if told.headers, err = splitSignature(d, told.headers); err != nil {
			return nil, err
		}
	}
	switch {
	case d.HTTPVersion != "" && d.HTTPVersion != "1.1" && d.HTTPVersion != "1.0":
		return nil, unsupported("http_version " + d.HTTPVersion)
	case d.Transfer != "" && d.Transfer != "chunked":
		return nil, unsupported("transfer " + d.Transfer)
	}
	return &request{delivery: d, path: s.prefix + d.Path, headers: told.headers, body: told.body, chunks: chunks}, nil
}

// splitSignature writes the header that carries the signature as two, cut at its
// first comma, as a proxy does that takes it for a list.
func splitSignature(d *delivery, headers []headerLine) ([]headerLine, error) {
	var out []headerLine
	split := false
	for _, line := range headers {
		before, after, comma := strings.Cut(line.value, ",")
		if comma && strings.Contains(string(d.Headers[line.name]), "{{signature}}") {
			split = true
			out = append(out, headerLine{line.name, before}, headerLine{line.name, after})
			continue
		}
		out = append(out, line)
	}
	if !split {
		return nil, unsupported("split_signature_header on a signature without a comma")
	}
	return out, nil
}

// send sends a request and reads the answer. The connection is kept if the server
// keeps it.
func (w *wire) send(r *request) (answer, error) {
	if w.conn == nil {
		conn, _ := net.DialTimeout("tcp", w.address, wirePatience)
		if conn == nil { // nobody listens: no answer either
			return answer{reset: true}, nil
		}
		w.conn, w.in = conn, bufio.NewReader(conn)
	}
	start := time.Now()
	if err := w.conn.SetDeadline(start.Add(wirePatience)); err != nil {
		return answer{}, err
	}
	written := make(chan struct{})
	goOn := make(chan bool, 1) // whether to send the body after the header
	go func() {
		defer close(written)
		w.write(r, goOn)
	}()
	if !r.WaitFor100 {
		goOn <- true
	}
	a, err := w.read(r, goOn)
	a.took = time.Since(start)
	close(goOn)
	if a.reset || err != nil || a.header.Get("Connection") == "close" || r.DeclaredOnly {
		_ = w.conn.Close() // ends the writer too
		<-written
		w.conn = nil
		return a, err
	}
	<-written
	return a, nil
}

// read reads the final answer. After 100 it lets the body go.
func (w *wire) read(r *request, goOn chan<- bool) (answer, error) {
	for {
		resp, err := http.ReadResponse(w.in, &http.Request{Method: r.Method})
		if err != nil {
			var waited net.Error
			if errors.As(err, &waited) && waited.Timeout() {
				return answer{}, fmt.Errorf("no answer within %v", wirePatience)
			}
			return answer{reset: true}, nil
		}
		if resp.StatusCode == http.StatusContinue && r.WaitFor100 && !r.DeclaredOnly {
			goOn <- true
			continue
		}
		return answerOf(resp), nil
	}
}

// answerOf reads an answer whole. One that is cut off is none.
func answerOf(resp *http.Response) answer {
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return answer{reset: true}
	}
	if resp.Close {
		resp.Header.Set("Connection", "close")
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}
}

// write writes header and body. Errors show when the answer is read.
func (w *wire) write(r *request, goOn <-chan bool) {
	var head bytes.Buffer
	version := r.HTTPVersion
	if version == "" {
		version = "1.1"
	}
	fmt.Fprintf(&head, "%s %s HTTP/%s\r\n", r.Method, r.path, version)
	has := func(name string) bool {
		return slices.ContainsFunc(r.headers, func(l headerLine) bool { return strings.EqualFold(l.name, name) })
	}
	if !has("Host") {
		fmt.Fprintf(&head, "Host: %s\r\n", w.address)
	}
	for _, line := range r.headers {
		fmt.Fprintf(&head, "%s: %s\r\n", line.name, line.value)
	}
	chunked := r.Transfer == "chunked" || len(r.chunks) > 0
	switch {
	case chunked && !has("Transfer-Encoding"):
		head.WriteString("Transfer-Encoding: chunked\r\n")
	case !chunked && !has("Content-Length") && (len(r.body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut):
		fmt.Fprintf(&head, "Content-Length: %d\r\n", len(r.body))
	}
	if len(r.Trailers) > 0 {
		fmt.Fprintf(&head, "Trailer: %s\r\n", strings.Join(slices.Sorted(maps.Keys(r.Trailers)), ", "))
	}
	head.WriteString("\r\n")
	if r.DeclaredOnly {
		_, _ = w.conn.Write(head.Bytes())
		return
	}
	if r.WaitFor100 || len(r.body) > 64<<10 {
		if _, err := w.conn.Write(head.Bytes()); err != nil || !<-goOn {
			return
		}
		head.Reset()
	} else if !<-goOn {
		return
	}
	if !chunked {
		head.Write(r.body)
		_, _ = w.conn.Write(head.Bytes())
		return
	}
	chunks := r.chunks
	if chunks == nil {
		half := len(r.body) / 2
		chunks = [][]byte{r.body[:half], r.body[half:]}
	}
	for _, chunk := range chunks {
		if len(chunk) == 0 {
			continue // an empty one would be the end
		}
		fmt.Fprintf(&head, "%x\r\n%s\r\n", len(chunk), chunk)
		if _, err := w.conn.Write(head.Bytes()); err != nil {
			return
		}
		head.Reset()
	}
	head.WriteString("0\r\n")
	for _, name := range slices.Sorted(maps.Keys(r.Trailers)) {
		fmt.Fprintf(&head, "%s: %s\r\n", name, r.Trailers[name])
	}
	head.WriteString("\r\n")
	_, _ = w.conn.Write(head.Bytes())
}
