package wire

import (
	"bytes"
	"net/url"
	"testing"
)

func TestTheHighestCommonVersionIsChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b []int
		want int
		ok   bool
	}{
		{[]int{1}, []int{1}, 1, true},
		{[]int{1, 2, 3}, []int{2, 3, 4}, 3, true},
		{[]int{3, 1, 2}, []int{2, 1}, 2, true},
		{[]int{1}, []int{2}, 0, false},
		{nil, []int{1}, 0, false},
		{[]int{-5, 0}, []int{-5, 0}, 0, false},
	} {
		if got, ok := Negotiate(c.a, c.b); got != c.want || ok != c.ok {
			t.Errorf("Negotiate(%v, %v) = %d, %v", c.a, c.b, got, ok)
		}
	}
}

func TestTheAudienceIsTheBrokersHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://notes.example.com":          "siyuan-tunnel:notes.example.com",
		"https://Notes.Example.com:443/base": "siyuan-tunnel:notes.example.com",
		"https://notes.example.com:8443":     "siyuan-tunnel:notes.example.com:8443",
		"http://127.0.0.1:80":                "siyuan-tunnel:127.0.0.1",
		"http://127.0.0.1:443":               "siyuan-tunnel:127.0.0.1:443",
		"https://[2001:DB8::1]:8443":         "siyuan-tunnel:[2001:db8::1]:8443",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Audience(u); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// A handshake frame, whatever it is, must end in a message or an error and
// never in more memory than its limit.
func FuzzHandshake(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in), HandshakeLimits())
		for {
			fr, err := r.Next()
			if err != nil {
				return
			}
			if len(fr.Header)+len(fr.Body) > HandshakeLimits().Frame {
				t.Fatalf("frame of %d+%d bytes passed the limit", len(fr.Header), len(fr.Body))
			}
			var v any
			switch fr.Type {
			case FrameChallenge:
				v = new(Challenge)
			case FrameAuth:
				v = new(Auth)
			case FrameWelcome:
				v = new(Welcome)
			default:
				v = new(Reject)
			}
			if r.Decode(fr, v) != nil {
				return
			}
			var out bytes.Buffer
			if err := NewWriter(&out, DefaultLimits()).Write(fr.Type, v, fr.Body); err != nil {
				t.Fatalf("what was decoded cannot be encoded: %v", err)
			}
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.bytes)
	}
	f.Add(prefix(1<<32-1, FrameCall, 1<<24-1))
	f.Fuzz(func(t *testing.T, in []byte) {
		src := bytes.NewReader(in)
		r := NewReader(src, DefaultLimits())
		fr, err := r.Next()
		if err != nil {
			return
		}
		used := in[:len(in)-src.Len()]
		if len(used) != prefixSize+len(fr.Header)+len(fr.Body) {
			t.Fatalf("read %d bytes for a frame of %d", len(used), prefixSize+len(fr.Header)+len(fr.Body))
		}
		var h Call
		if r.Decode(fr, &h) != nil {
			return
		}
		var out bytes.Buffer
		if err := NewWriter(&out, Limits{Frame: 64 << 20, Header: 8 << 20}).Write(fr.Type, h, fr.Body); err != nil {
			t.Fatal(err)
		}
		back, err := NewReader(&out, Limits{Frame: 64 << 20, Header: 8 << 20}).Next()
		if err != nil || back.Type != fr.Type || !bytes.Equal(back.Body, fr.Body) {
			t.Fatalf("written again it is %v, %v", back, err)
		}
	})
}
