package guard

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Upload is a file that an agent brings.
type Upload struct {
	Name string // as given; a base name is made of it
	Size int64
	Sum  string // SHA-256 in lower-case hex; "" where it is not known beforehand
}

// StoredFile is what SiYuan has after an upload, read back from it.
type StoredFile struct {
	Path string // as notes link to it, beginning with assets/
	Size int64
	Sum  string // SHA-256 in lower-case hex
}

// CheckUpload proves that the caller may store a file: for a document, with the
// level rw there; for nobody, with the assets switch.
func (s *Session) CheckUpload(d *Doc) error {
	if d == nil {
		if err := s.holds(contract.SwitchAssets); err != nil {
			return contract.AsError(err).WithHint("Name the document the file is for in id; then the level rw on its notebook is enough.")
		}
		return nil
	}
	return s.use(d.nb, contract.ReadWrite)
}

// StoreFile is [Session.Write] of one file, under a name that nothing has yet. The
// document is not written to, so it is not locked either: an upload may take long.
// body is read until io.EOF. One that ends early, goes on or fails, or has another
// digest, leaves nothing behind.
func (s *Session) StoreFile(ctx context.Context, in Intent, d *Doc, u Upload, body io.Reader) (stored StoredFile, err error) {
	if err := s.CheckUpload(d); err != nil {
		return stored, err
	}
	path, err := s.freePath(ctx, contract.FileName(u.Name))
	if err != nil {
		return stored, err
	}
	release, err := s.g.opt.Locks.acquire(ctx, []string{"file " + path})
	if err != nil {
		return stored, err
	}
	defer release()
	tx := &Tx{s: s, notes: map[string]bool{}}
	if d != nil {
		tx.notes[d.nb.ID()] = true
		s.touch(d.nb.id)
	}
	err = s.run(context.WithoutCancel(ctx), in, tx, func(ctx context.Context, tx *Tx) error {
		stored, err = tx.store(ctx, path, u, body)
		return err
	})
	return stored, err
}

// errOtherSum is the end of a body that is not what its sender announced.
var errOtherSum = errors.New("another SHA-256")

func (tx *Tx) store(ctx context.Context, path string, u Upload, body io.Reader) (stored StoredFile, err error) {
	sent := &summing{r: body, sum: sha256.New(), want: u.Sum}
	st := Step{Op: "file.store", ID: path, New: []string{path}, Marks: []Mark{{LookFile, path, goneMark, fileMark(u.Size)}}}
	if u.Sum != "" {
		st.Marks = append(st.Marks, Mark{LookFileSum, path, goneMark, u.Sum})
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.PutFileFrom(ctx, "/data/"+path, sent, u.Size, tx.s.g.opt.Now())
	})
	switch {
	case errors.Is(err, errOtherSum):
		return stored, contract.Fail(contract.InvalidValue, "The file that came has another SHA-256 than was announced; nothing was stored.").WithCause(err)
	case errors.Is(err, siyuan.ErrSource):
		return stored, contract.Fail(contract.TransferInterrupted, "The file did not come as it was announced, with %d bytes; nothing was stored.", u.Size).WithCause(err)
	case err != nil && !answered(err):
		return stored, err
	}
	stored.Path = path
	if stored.Size, stored.Sum, err = tx.s.g.digestFile(ctx, path); err != nil && !errors.Is(err, siyuan.Missing) {
		return stored, err
	}
	if err != nil || stored.Size != u.Size || stored.Sum != sent.digest() {
		return stored, notPersisted("SiYuan reported the file as stored, but does not have it as it was sent.")
	}
	return stored, nil
}

// summing computes the digest of what is read through it.
type summing struct {
	r    io.Reader
	sum  hash.Hash
	want string
}

func (s *summing) digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	if err == io.EOF && s.want != "" && s.want != s.digest() {
		err = errOtherSum
	}
	return n, err
}

const goneMark = "gone" // what look says of something that is not there

func fileMark(size int64) string { return strconv.FormatInt(size, 10) + " bytes" }

// digestFile reads a file of the assets folder for its size and SHA-256.
func (g *Guard) digestFile(ctx context.Context, path string) (size int64, sum string, err error) {
	f, err := g.r.OpenFile(ctx, "/data/"+path)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	h := sha256.New()
	if size, err = io.CopyBuffer(h, onlyReader{f}, make([]byte, 64<<10)); err != nil {
		return size, "", &siyuan.Error{Kind: siyuan.Offline, Endpoint: "file/getFile", Err: err}
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

type onlyReader struct{ io.Reader }

// storedForm is the path of a file that an agent stored: name, a time, and a mark.
var storedForm = regexp.MustCompile(`^assets/(.+)-([0-9]{14})-([0-9a-z]{7})(\.[^./]*)?$`)

const maxExtension = 16 // with the dot; a longer one is part of the name

// freePath chooses where a file is stored. SiYuan ends names of its files with an
// id; ours has a mark in the place of its random half, by which the same agent's
// later calls know the file as its own.
func (s *Session) freePath(ctx context.Context, name string) (string, error) {
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= maxExtension {
		base, ext = name[:i], name[i:]
	}
	for i := range 100 { // the same name in the same second
		at := s.g.opt.Now().Add(time.Duration(i) * time.Second).Format("20060102150405")
		path := "assets/" + base + "-" + at + "-" + s.ownMark(base+ext, at) + ext
		seen, err := s.g.look(ctx, LookFile, siyuan.ID(path))
		if err != nil || seen == goneMark {
			return path, err
		}
	}
	return "", contract.Fail(contract.RateLimited, "Too many files of that name were stored just now.").After(60)
}

// ownMark proves that a file was stored by the session's agent: seven digits of a
// MAC over whose it is, its name and its time.
func (s *Session) ownMark(name, at string) string {
	mac := hmac.New(sha256.New, s.g.opt.Secret)
	for _, part := range []string{"stored file", s.author.Scope, name, at} {
		mac.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	mark := mac.Sum(nil)[:7]
	for i, b := range mark {
		mark[i] = digits[int(b)%len(digits)]
	}
	return string(mark)
}

// stored reports whether the session's agent stored the file of that path. It may
// link to it before any note does.
func (s *Session) stored(path string) bool {
	m := storedForm.FindStringSubmatch(path)
	return m != nil && hmac.Equal([]byte(m[3]), []byte(s.ownMark(m[1]+m[4], m[2])))
}
