package guard

import (
	"archive/zip"
	"context"
	"errors"
	"io"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// SendAsset writes an asset to out as SiYuan gives it, never whole in memory.
func (s *Session) SendAsset(ctx context.Context, a Asset, out contract.BodyWriter) error {
	f, size, err := s.openAsset(ctx, a)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // all of it was read, or the error says otherwise
	if err := out.Announce(size); err != nil {
		return err
	}
	return send(out, f, size)
}

// SendZip writes assets to out as one zip, which is made on the way and kept
// nowhere.
func (s *Session) SendZip(ctx context.Context, assets []Asset, out io.Writer) error {
	z := zip.NewWriter(out)
	for _, a := range assets {
		if err := s.pack(ctx, z, a); err != nil {
			return err
		}
	}
	return z.Close()
}

func (s *Session) pack(ctx context.Context, z *zip.Writer, a Asset) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: a.path, Method: zip.Store, Modified: s.g.opt.Now()}) // most assets are compressed already
	if err != nil {
		return err
	}
	return s.CopyAsset(ctx, a, w)
}

// CopyAsset writes an asset to out, never whole in memory.
func (s *Session) CopyAsset(ctx context.Context, a Asset, out io.Writer) error {
	f, size, err := s.openAsset(ctx, a)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return send(out, f, size)
}

func (s *Session) openAsset(ctx context.Context, a Asset) (*siyuan.FileStream, int64, error) {
	if a.s != s {
		return nil, 0, contract.Internalf(errors.New("guard: reference of another session"), "use asset")
	}
	st, err := s.g.r.StatAsset(ctx, a.path)
	if siyuan.KindOf(err) == siyuan.Rejected {
		err = siyuan.Missing
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := s.g.r.OpenFile(ctx, "/data/"+a.path)
	return f, st.Size, err
}

// send copies a file that has size bytes.
func send(out io.Writer, f io.Reader, size int64) error {
	n, err := io.CopyBuffer(struct{ io.Writer }{out}, onlyReader{f}, make([]byte, 64<<10))
	switch {
	case err != nil && contract.CodeOf(err) == contract.Internal:
		return contract.Fail(contract.SiYuanOffline, "The file broke off.").WithCause(err)
	case err != nil:
		return err
	case n != size:
		return contract.Fail(contract.StateChanged, "The file changed while it was sent.")
	}
	return nil
}
