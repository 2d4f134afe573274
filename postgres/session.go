package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is what is known of a connection, whoever owns its pool. It goes with
// the connection.
type session struct {
	prepared map[string]*pgconn.StatementDescription // by the statement's text
	names    int                                     // how many have been given
	out      outgoing
}

const sessionKey = "onceward.session"

func sessionOf(conn *pgx.Conn) *session {
	data := conn.PgConn().CustomData()
	s, ok := data[sessionKey].(*session)
	if !ok {
		s = &session{prepared: map[string]*pgconn.StatementDescription{}}
		data[sessionKey] = s
	}
	return s
}

// noColumns stands for what a statement without an answer returns: something has
// to, or the driver asks the server each time.
var noColumns = []pgconn.FieldDescription{{Name: "nothing"}}

// prepare prepares those of the statements that are not yet. A name is given once,
// so that whatever becomes of it cannot be in the way of another.
func (s *session) prepare(ctx context.Context, conn *pgx.Conn, statements []statement) error {
	line := conn.PgConn().StartPipeline(ctx)
	var texts, names []string
	for _, st := range statements {
		if s.prepared[st.sql] == nil {
			s.names++
			texts, names = append(texts, st.sql), append(names, "onceward_"+strconv.Itoa(s.names))
			line.SendPrepare(names[len(names)-1], st.sql, nil)
		}
	}
	if err := line.Sync(); err != nil {
		_ = line.Close()
		return err
	}
	for i := range texts {
		results, err := line.GetResults()
		description, ok := results.(*pgconn.StatementDescription)
		if err == nil && !ok {
			err = errUnanswered
		}
		if err != nil {
			_ = line.Close() // what it says is that it follows from err
			return err
		}
		description.Name = names[i]
		if len(description.Fields) == 0 {
			description.Fields = noColumns
		}
		s.prepared[texts[i]] = description
	}
	return line.Close()
}

// outgoing is where a connection's messages are put together. The driver lets go
// of its own memory each time and grows it anew, and moves what it has with each
// step. It is a message of no bytes that hands the driver this one instead; it
// belongs to one connection, so that the driver may keep it.
type outgoing struct {
	buf  []byte
	need int
}

// reserve makes room for so many bytes of messages.
func (s *session) reserve(conn *pgx.Conn, need int) {
	if cap(s.out.buf) > most && need < most { // left by an exception
		s.out.buf = nil
	}
	s.out.need = need
	conn.PgConn().Frontend().Send(&s.out)
}

// Frontend implements pgproto3.FrontendMessage.
func (o *outgoing) Frontend() {}

// Decode implements pgproto3.FrontendMessage.
func (o *outgoing) Decode([]byte) error { return nil }

// Encode implements pgproto3.FrontendMessage.
func (o *outgoing) Encode(b []byte) ([]byte, error) {
	if o.need <= cap(b)-len(b) {
		return b, nil
	}
	if len(b)+o.need > cap(o.buf) {
		o.buf = make([]byte, 0, len(b)+o.need+o.need/4)
	}
	return append(o.buf[:0], b...), nil
}
