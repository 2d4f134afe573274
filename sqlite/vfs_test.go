package sqlite_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// disk stands between SQLite and the files of one folder: it counts what is written
// to them, can make that fail, and knows what of it was synced. It takes the place of
// SQLite's own layer for files (its VFS) in the whole process, and hands on to it
// what it is not asked about.
type disk struct {
	below lib.Tsqlite3_vfs // what it replaces, as it was
	real  uintptr          // where that is

	open   func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	remove func(tls *libc.TLS, vfs, name uintptr, sync int32) int32
	write  func(tls *libc.TLS, file, from uintptr, n int32, at int64) int32
	cut    func(tls *libc.TLS, file uintptr, size int64) int32
	sync   func(tls *libc.TLS, file uintptr, flags int32) int32

	mu      sync.Mutex
	dir     string             // guarded by mu, as all below
	methods map[uintptr]*table // by those they replace
	opened  map[uintptr]opened // by SQLite's own number of an open file
	images  map[string]*image  // by path
	steps   int                // since arm
	failAt  int                // the step to fail; 0 is none, everyStep all
	late    bool               // it does its work first
	code    int32              // what it fails with
	struck  bool
	onStep  func(path string, step int) // called before each step is done, under mu
}

// everyStep is the step to fail where all are to.
const everyStep = -1

// table is a copy of the methods of a kind of file, with some replaced.
type table struct {
	at    uintptr
	below lib.Tsqlite3_io_methods
}

type opened struct {
	path  string
	below lib.Tsqlite3_io_methods
}

// image is what a disk holds of one file: what was synced, and what was written
// since.
type image struct {
	synced  []byte
	exists  bool // it was synced once
	pending []change
}

// change is a write, or the setting of a length where data is nil.
type change struct {
	at   int64
	data []byte
}

func (c change) apply(b []byte) []byte {
	end := int(c.at) + len(c.data)
	if c.data == nil && end < len(b) {
		return b[:end]
	}
	if end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[c.at:], c.data)
	return b
}

// load and store read and write memory that SQLite sees, word by word.
func load[T any](from uintptr) (v T) {
	for at := uintptr(0); at < unsafe.Sizeof(v); at += unsafe.Sizeof(at) {
		*(*uintptr)(unsafe.Add(unsafe.Pointer(&v), at)) = libc.AtomicLoadNUintptr(from+at, 0)
	}
	return v
}

func store[T any](to uintptr, v *T) {
	for at := uintptr(0); at < unsafe.Sizeof(*v); at += unsafe.Sizeof(at) {
		libc.AtomicStoreNUintptr(to+at, *(*uintptr)(unsafe.Add(unsafe.Pointer(v), at)), 0)
	}
}

// pointer is the number by which SQLite calls a function, callable the function of
// such a number.
func pointer[F any](f *F) uintptr     { return *(*uintptr)(unsafe.Pointer(f)) }
func callable[F any](p uintptr) (f F) { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// newDisk takes the place of SQLite's layer for files until the test ends. Whatever
// uses a file of dir must be closed by then.
func newDisk(t *testing.T, dir string) *disk {
	t.Helper()
	tls := libc.NewTLS()
	d := &disk{dir: dir, real: lib.Xsqlite3_vfs_find(tls, 0), methods: map[uintptr]*table{}, opened: map[uintptr]opened{}, images: map[string]*image{}}
	d.below = load[lib.Tsqlite3_vfs](d.real)
	d.open, d.remove, d.write, d.cut, d.sync = d.xOpen, d.xDelete, d.xWrite, d.xTruncate, d.xSync
	name, err := libc.CString("disk")
	if err != nil {
		t.Fatal(err)
	}
	vfs := d.below
	vfs.FzName, vfs.FxOpen, vfs.FxDelete = name, pointer(&d.open), pointer(&d.remove)
	at := libc.Xcalloc(tls, 1, 512)
	store(at, &vfs)
	if rc := lib.Xsqlite3_vfs_register(tls, at, 1); rc != lib.SQLITE_OK {
		t.Fatalf("register: %d", rc)
	}
	t.Cleanup(func() {
		if rc := lib.Xsqlite3_vfs_unregister(tls, at); rc != lib.SQLITE_OK {
			t.Errorf("unregister: %d", rc)
		}
		lib.Xsqlite3_vfs_register(tls, d.real, 1) // the default again
		tls.Close()
	})
	return d
}

// step counts something that is done to a file, and says whether it is to fail, and
// whether it does its work first.
func (d *disk) step(path string) (fails, late bool) {
	if d.steps++; d.onStep != nil {
		d.onStep(path, d.steps)
	}
	if d.steps != d.failAt && d.failAt != everyStep {
		return false, false
	}
	d.struck = true
	return true, d.late
}

// do runs a step on a file: work does it below, note notes it when it is done.
func (d *disk) do(path string, work func() int32, note func()) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	fails, late := d.step(path)
	if fails && !late {
		return d.code
	}
	rc := work()
	if rc == lib.SQLITE_OK {
		note()
	}
	if fails && rc == lib.SQLITE_OK {
		return d.code
	}
	return rc
}

func (d *disk) xOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	rc := callable[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](d.below.FxOpen)(tls, d.real, name, file, flags, out)
	methods := libc.AtomicLoadNUintptr(file, 0)
	if name == 0 || rc != lib.SQLITE_OK || methods == 0 {
		return rc
	}
	path := libc.GoString(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !strings.HasPrefix(path, d.dir) {
		return rc
	}
	m := d.methods[methods]
	if m == nil {
		m = &table{at: libc.Xcalloc(tls, 1, 512), below: load[lib.Tsqlite3_io_methods](methods)}
		own := m.below
		own.FxWrite, own.FxTruncate, own.FxSync = pointer(&d.write), pointer(&d.cut), pointer(&d.sync)
		store(m.at, &own)
		d.methods[methods] = m
	}
	libc.AtomicStoreNUintptr(file, m.at, 0)
	d.opened[file] = opened{path, m.below}
	if d.images[path] == nil {
		d.images[path] = &image{}
	}
	return rc
}

func (d *disk) xDelete(tls *libc.TLS, _, name uintptr, sync int32) int32 {
	below := callable[func(*libc.TLS, uintptr, uintptr, int32) int32](d.below.FxDelete)
	path := libc.GoString(name)
	d.mu.Lock()
	mine := strings.HasPrefix(path, d.dir)
	d.mu.Unlock()
	if !mine {
		return below(tls, d.real, name, sync)
	}
	return d.do(path, func() int32 { return below(tls, d.real, name, sync) }, func() { delete(d.images, path) })
}

func (d *disk) xWrite(tls *libc.TLS, file, from uintptr, n int32, at int64) int32 {
	f := d.file(file)
	return d.do(f.path, func() int32 {
		return callable[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.below.FxWrite)(tls, file, from, n, at)
	}, func() {
		i := d.image(f.path)
		i.pending = append(i.pending, change{at, bytes.Clone(libc.GoBytes(from, int(n)))})
	})
}

func (d *disk) xTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f := d.file(file)
	return d.do(f.path, func() int32 {
		return callable[func(*libc.TLS, uintptr, int64) int32](f.below.FxTruncate)(tls, file, size)
	}, func() {
		i := d.image(f.path)
		i.pending = append(i.pending, change{at: size})
	})
}

func (d *disk) xSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := d.file(file)
	return d.do(f.path, func() int32 {
		return callable[func(*libc.TLS, uintptr, int32) int32](f.below.FxSync)(tls, file, flags)
	}, func() {
		i := d.image(f.path)
		for _, c := range i.pending {
			i.synced = c.apply(i.synced)
		}
		i.exists, i.pending = true, nil
	})
}

func (d *disk) file(number uintptr) opened {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened[number]
}

// image returns that of a path, which may have been removed while it was open.
func (d *disk) image(path string) *image {
	if d.images[path] == nil {
		d.images[path] = &image{}
	}
	return d.images[path]
}

// watch makes another folder the disk's, and forgets what the one before held.
func (d *disk) watch(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dir = dir
	clear(d.images)
}

// arm makes the n-th step from now on fail with a code, 0 for none.
func (d *disk) arm(n int, late bool, code int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps, d.failAt, d.late, d.code, d.struck = 0, n, late, code, false
}

// disarm lets everything succeed, and reports whether a step has failed.
func (d *disk) disarm() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = 0
	return d.struck
}

// loss says what of the writes that were not synced is lost when the power fails.
type loss func(pending []change, chance *rand.Rand) []change

// All of it, nothing, or something, in any order and torn anywhere.
func losesAll([]change, *rand.Rand) []change         { return nil }
func losesNothing(p []change, _ *rand.Rand) []change { return p }
func losesSome(p []change, chance *rand.Rand) []change {
	var kept []change
	for _, c := range p {
		switch chance.IntN(3) {
		case 0:
		case 1:
			kept = append(kept, c)
		case 2:
			if len(c.data) > 0 {
				c.data = c.data[:chance.IntN(len(c.data))+1]
			}
			kept = append(kept, c)
		}
	}
	return kept
}

// powerCut is what the files hold when the power fails now; mu is held.
func (d *disk) powerCut(l loss, chance *rand.Rand) map[string][]byte {
	files := map[string][]byte{}
	for path, i := range d.images {
		kept := l(i.pending, chance)
		if !i.exists && len(kept) == 0 {
			continue
		}
		content := bytes.Clone(i.synced)
		for _, c := range kept {
			content = c.apply(content)
		}
		files[filepath.Base(path)] = content
	}
	return files
}

// restore writes files into a folder.
func restore(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
