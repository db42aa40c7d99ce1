package siyuan

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestLiveALargeFileGoesToSiYuanAndBackByteForByte(t *testing.T) {
	l := newLive(t)
	const size = 25 << 20
	path := "/data/assets/" + liveName + "-" + string(l.id()) + ".bin"
	t.Cleanup(func() { _ = l.RemoveFile(context.Background(), path) })
	bytes := func() io.Reader { return io.LimitReader(mathrand.NewChaCha8([32]byte{1}), size) }
	check(t, l.PutFileFrom(l.ctx, path, bytes(), size, time.Now()))
	want := sha256.New()
	_, err := io.Copy(want, bytes())
	check(t, err)
	f := take(l.OpenFile(l.ctx, path))(t)
	defer f.Close()
	equal(t, "the size told", f.Size, int64(-1)) // SiYuan sends what is large in chunks
	got := sha256.New()
	n := take(io.Copy(got, f))(t)
	equal(t, "the size", n, int64(size))
	equal(t, "the digest", string(got.Sum(nil)), string(want.Sum(nil)))
	equal(t, "the size SiYuan tells", take(l.StatAsset(l.ctx, strings.TrimPrefix(path, "/data/")))(t).Size, int64(size))
}

func TestLiveAFileThatBreaksOffLeavesNothing(t *testing.T) {
	l := newLive(t)
	path := "/data/assets/" + liveName + "-" + string(l.id()) + ".bin"
	body := io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20)), iotest.ErrReader(errors.New("broken")))
	if err := l.PutFileFrom(l.ctx, path, body, 4<<20, time.Now()); !errors.Is(err, ErrSource) {
		t.Fatal(err)
	}
	if _, err := l.OpenFile(l.ctx, path); KindOf(err) != Missing {
		t.Errorf("a part of the file is there: %v", err)
	}
}
