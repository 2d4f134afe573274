package sqlite

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// checkpointer moves the write-ahead log into the file beside the writer. SQLite's
// own way is to do it inside a commit, which then takes many times as long as the
// others. A connection beside the writer never catches up with a busy one, so that
// the log would never begin anew and each sync would pay for a growing file.
// Therefore in two steps: the bulk on a reading connection while batches are
// committed, then what has been added meanwhile by the writer between two of them.
type checkpointer struct {
	db     *sql.DB       // one connection, whose synchronous is full
	most   int64         // how many pages may be in the log alone before they are moved
	cancel func()        // ends what it waits for
	wake   chan struct{} // holds a token once the log is long
	moved  atomic.Bool   // the bulk is in the file
	ended  chan struct{}
}

// newCheckpointer starts one over a pool that it closes; it must be stopped.
func newCheckpointer(db *sql.DB, most int64) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	p := &checkpointer{db: db, most: most, cancel: cancel, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for range p.wake {
			// A log that stays long is no reason to refuse work: the next commit asks again,
			// and writer.cutLog bounds it.
			var busy, inLog, done int64
			if err := p.db.QueryRowContext(ctx, moveLog).Scan(&busy, &inLog, &done); err == nil && busy == 0 {
				p.moved.Store(true)
			}
			select {
			case <-p.wake: // asked for what has just been done
			default:
			}
		}
	}()
	return p
}

const moveLog = `pragma wal_checkpoint(passive)`

// before is called by the writer between two transactions.
func (p *checkpointer) before(c *session) {
	if p == nil || !p.moved.Load() {
		return
	}
	busy := int64(1)
	_ = c.query(func(row []value) { busy, _ = row[0].(int64) }, moveLog) // the rest; if it fails, see newCheckpointer
	if busy == 0 {
		p.moved.Store(false)
	}
}

// after is called by the writer after each transaction.
func (p *checkpointer) after(c *session) {
	if p == nil {
		return
	}
	waiting := int64(0)
	err := c.query(func(row []value) {
		inLog, _ := row[1].(int64)
		moved, _ := row[2].(int64)
		waiting = inLog - moved
	}, `pragma wal_checkpoint(noop)`)
	if err != nil || waiting < p.most {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default: // it has been told
	}
}

// stop ends it; the caller holds the writer's lock.
func (p *checkpointer) stop() {
	if p == nil {
		return
	}
	p.cancel()
	close(p.wake)
	<-p.ended
	_ = p.db.Close() // it has only moved what others wrote
}
