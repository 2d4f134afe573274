package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"strings"
	"testing"

	modernc "modernc.org/sqlite"

	"github.com/onceward/onceward/sqlite"
)

// bare is an application's wrapper around the driver that hides what the store
// needs, as one that only embeds driver.Conn does.
type bare struct{ driver.Connector }

func (b bare) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := b.Connector.Connect(ctx)
	return struct{ driver.Conn }{c}, err
}

func TestBareWrapper(t *testing.T) {
	connector, err := modernc.NewConnector("file:" + filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(bare{connector})
	defer db.Close()
	if _, err := sqlite.New(db, sqlite.Config{}); err == nil || !strings.Contains(err.Error(), "forward them") {
		t.Errorf("new: %v, want it to say what to forward", err)
	}
}
