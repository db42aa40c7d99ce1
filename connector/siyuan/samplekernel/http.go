package samplekernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxBody bounds a request body; a real kernel has no such limit.
const maxBody = 256 << 20

// handler answers one JSON request, with the kernel's lock held.
type handler func(k *Kernel, a args) (any, error)

// route is how one path is served.
type route struct {
	serve  handler
	raw    func(k *Kernel, w http.ResponseWriter, r *http.Request) // instead of serve: not JSON in, or not JSON out
	noBody bool                                                    // a body that cannot be read is as good as none
	public bool                                                    // no token needed
	get    bool                                                    // GET as well as POST
	write  bool                                                    // changes the workspace: waits for the deletes before it
}

// Handler serves the kernel's HTTP interface.
func (k *Kernel) Handler() http.Handler { return k.faults.wrap(http.HandlerFunc(k.serveHTTP)) }

func (k *Kernel) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	rt, known := k.routes[r.URL.Path]
	switch {
	case known && (r.Method == http.MethodPost || rt.get && r.Method == http.MethodGet):
		k.serveRoute(w, r, rt)
	case r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/"):
		k.serveStatic(w, r)
	case k.redirectSlash(w, r):
	default:
		notFound(w)
	}
}

func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, "404 page not found")
}

func (k *Kernel) redirectSlash(w http.ResponseWriter, r *http.Request) bool {
	trimmed := strings.TrimSuffix(r.URL.Path, "/")
	if _, known := k.routes[trimmed]; !known || trimmed == r.URL.Path {
		return false
	}
	w.Header().Set("Location", trimmed)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return true
}

// authorize answers 401 itself when it returns false.
func (k *Kernel) authorize(w http.ResponseWriter, r *http.Request) bool {
	msg := "Auth failed [session]"
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found &&
		(strings.EqualFold(scheme, "token") || strings.EqualFold(scheme, "bearer")) {
		if token == k.token {
			return true
		}
		msg = "Auth failed [header: Authorization]"
	} else if q := r.URL.Query().Get("token"); q != "" {
		if q == k.token {
			return true
		}
		msg = "Auth failed [query: token]"
	}
	writeJSON(w, http.StatusUnauthorized, map[string]any{"code": -1, "msg": msg})
	return false
}

func (k *Kernel) serveRoute(w http.ResponseWriter, r *http.Request, rt route) {
	if !rt.public && !k.authorize(w, r) {
		return
	}
	if rt.raw != nil {
		rt.raw(k, w, r)
		return
	}
	a, err := readArgs(r)
	if err != nil && !rt.noBody {
		reply(w, http.StatusOK, nil, err)
		return
	}
	data, err := k.call(rt, a)
	reply(w, http.StatusOK, data, err)
}

// call runs a handler under the lock and makes a bad argument the answer it is
// in a real kernel: success without data.
func (k *Kernel) call(rt route, a args) (data any, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			if _, isBad := r.(badArgument); !isBad {
				panic(r)
			}
			data, err = nil, nil
		}
	}()
	if k.index == nil {
		return nil, failCode(-1, "kernel is closed")
	}
	k.settle()
	if rt.write {
		k.drainDeletes()
	}
	if data, err = rt.serve(k, a); errors.Is(err, errSwallowed) {
		return nil, nil
	}
	return data, err
}

func readArgs(r *http.Request) (args, error) {
	prefix := "Parses request [" + r.URL.Path + "] failed: "
	var m map[string]any
	err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&m)
	if errors.Is(err, io.EOF) {
		return nil, fail(prefix + "the request body is empty or truncated (EOF)")
	}
	if err != nil {
		return nil, fail(prefix + err.Error())
	}
	return args(m), nil
}

func reply(w http.ResponseWriter, status int, data any, err error) {
	answer := struct {
		Code int    `json:"code"`
		Msg  string `json:"msg"`
		Data any    `json:"data"`
	}{Data: data}
	if err != nil {
		var e *apiError
		if !errors.As(err, &e) {
			e = &apiError{code: -1, msg: err.Error()}
		}
		answer.Code, answer.Msg, answer.Data = e.code, e.msg, e.data
	}
	writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(bytes.TrimRight(b.Bytes(), "\n"))
}

// serveStatic gives assets and exported files to anyone on this machine, and
// sends everybody else to the lock screen.
func (k *Kernel) serveStatic(w http.ResponseWriter, r *http.Request) {
	for prefix, dir := range map[string]string{"/assets/": "data/assets/", "/export/": "temp/export/"} {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
			k.serveFile(w, dir+rest)
			return
		}
	}
	if r.Header.Get("Authorization") != "" && !k.authorize(w, r) {
		return
	}
	http.Redirect(w, r, "/check-auth?to="+url.QueryEscape(r.URL.Path), http.StatusFound)
}
