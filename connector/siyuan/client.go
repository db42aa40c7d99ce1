package siyuan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// Client is the connection to one kernel. It is safe for concurrent use, and
// there should be one per kernel: it remembers which writes the kernel may not
// have indexed yet.
//
// A Client by itself can only probe; [Client.Reader] and [Client.Writer] are
// what the guard holds.
type Client struct {
	cfg   Config
	base  *url.URL
	http  *http1
	fresh freshness

	session mcpSession
}

// New makes a client; it does not contact the kernel.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg.withDefaults(), base: base}
	c.http = &http1{dial: c.dial, limit: c.cfg.MaxResponseBytes}
	return c, nil
}

// Close drops idle connections. Calls in progress go on.
func (c *Client) Close() { c.http.drop() }

// Reader is the half of the API that cannot change notes.
func (c *Client) Reader() *Reader { return &Reader{c: c} }

// Writer is the half of the API that can, with a Reader for reading back.
func (c *Client) Writer() *Writer { return &Writer{Reader: c.Reader()} }

// Reader has the reading endpoints of the kernel. Endpoints that read but leave
// a trace (a stored setting, an index row) are called so that they leave none,
// or are methods of [Writer].
type Reader struct{ c *Client }

// Writer has the writing endpoints of the kernel. A write is sent once; unless
// its connection could not be opened at all, a failure of transport is
// [OutcomeUnknown]. Success says what the kernel said, which is not proof:
// callers read back.
type Writer struct{ *Reader }

// Version is the kernel's version, such as "3.7.3". It needs no token.
func (c *Client) Version(ctx context.Context) (string, error) {
	return send[string](ctx, c, call{path: "system/version", flags: public})
}

// Boot is how far the kernel is in starting; it is ready at Progress 100.
type Boot struct {
	Details  string `json:"details"`
	Progress int    `json:"progress"`
}

// Ready reports whether the kernel has finished booting. Its index may still be
// incomplete for some seconds.
func (b Boot) Ready() bool { return b.Progress >= 100 }

// BootProgress asks how far the kernel is in starting. It needs no token.
func (c *Client) BootProgress(ctx context.Context) (Boot, error) {
	return send[Boot](ctx, c, call{path: "system/bootProgress", flags: public})
}

// Identity tells one workspace from another without telling its secrets.
type Identity struct {
	// System is a hash of the installation's id (conf.system.id): it changes
	// when another device's kernel answers.
	System string
	// Workspace is a hash of installation and workspace directory: it changes
	// when another workspace is opened. Kernels that do not tell the directory
	// give the hash of an empty one.
	Workspace string
	// Version of the kernel.
	Version string
	// BoxDocs says that every notebook has a root document with the notebook's
	// own id (fileTree.boxDocEnabled).
	BoxDocs bool
	// ReadOnly says that the kernel refuses every write.
	ReadOnly bool
}

// Identity asks who is answering, with one authenticated call; it is also the
// proof that the token works.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	data, err := send[struct {
		Conf kernelConf `json:"conf"`
	}](ctx, c, call{path: "system/getConf", flags: direct})
	if err != nil {
		return Identity{}, err
	}
	hash := func(parts ...string) string {
		h := sha256.New()
		for _, p := range parts {
			h.Write([]byte(p))
			h.Write([]byte{0})
		}
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	conf, sys := data.Conf, data.Conf.System
	return Identity{
		System:    hash(sys.ID),
		Workspace: hash(sys.ID, sys.WorkspaceDir),
		Version:   sys.KernelVersion,
		BoxDocs:   conf.FileTree.BoxDocEnabled,
		ReadOnly:  conf.ReadOnly || conf.Editor.ReadOnly,
	}, nil
}

// kernelConf is the little we read of getConf. The rest, which contains the
// token and the access code, is dropped with the answer.
type kernelConf struct {
	System struct {
		ID            string `json:"id" shape:"nonempty"`
		KernelVersion string `json:"kernelVersion" shape:"nonempty"`
		WorkspaceDir  string `json:"workspaceDir"`
	} `json:"system"`
	FileTree struct {
		BoxDocEnabled bool `json:"boxDocEnabled"`
	} `json:"fileTree"`
	Editor struct {
		ReadOnly bool `json:"readOnly"`
	} `json:"editor"`
	ReadOnly bool `json:"readonly"`
}
