package settings

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Listen string        `key:"listen" env:"APP_LISTEN" default:"127.0.0.1:8080" doc:"Address."`
	Quiet  bool          `key:"quiet" env:"APP_QUIET" doc:"Say less."`
	Wait   time.Duration `key:"wait" env:"APP_WAIT" default:"30s" doc:"How long."`
	Limit  int           `key:"limit" env:"APP_LIMIT" default:"7" doc:"How many."`
	URLs   []string      `key:"urls" env:"APP_URLS" doc:"Where."`
	Key    string        `key:"key" env:"APP_KEY" secret:"true" doc:"The key."`
}

func load(t *testing.T, file string, environ ...string) (sample, error) {
	t.Helper()
	var c sample
	src := Source{Environ: environ, Prefix: "APP_", Read: func(name string) ([]byte, error) {
		switch name {
		case "conf.yaml":
			return []byte(file), nil
		case "secret.txt":
			return []byte("from file\n"), nil
		}
		return nil, os.ErrNotExist
	}}
	if file != "" {
		src.File = "conf.yaml"
	}
	err := Load(&c, src)
	return c, err
}

func TestEnvironmentWinsOverFileOverDefault(t *testing.T) {
	got, err := load(t, "listen: 1.2.3.4:1\nlimit: 9\nurls: [a, b]\nquiet: true\n", "APP_LISTEN=5.6.7.8:2", "HOME=/x")
	if err != nil {
		t.Fatal(err)
	}
	want := sample{Listen: "5.6.7.8:2", Quiet: true, Wait: 30 * time.Second, Limit: 9, URLs: []string{"a", "b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	_, err := load(t, "lisen: x\nlimit: many\n", "APP_WAIT=soon", "APP_URL=x", "APP_QUIET=perhaps")
	var p Problems
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want Problems", err)
	}
	for _, want := range []string{
		`unknown key "lisen" (did you mean listen?)`, `limit: "many" is not a whole number`,
		`APP_WAIT: "soon" is not a duration such as 30s`, "unknown variable APP_URL (did you mean APP_URLS?)",
		`APP_QUIET: "perhaps" is not true or false`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %q", want, err)
		}
	}
}

func TestSecretComesFromItsFileTwin(t *testing.T) {
	got, err := load(t, "", "APP_KEY_FILE=secret.txt")
	if err != nil || got.Key != "from file" {
		t.Errorf("got %q, %v", got.Key, err)
	}
	if _, err := load(t, "", "APP_KEY_FILE=secret.txt", "APP_KEY=x"); err == nil {
		t.Error("both forms at once were accepted")
	}
	if _, err := load(t, "", "APP_KEY_FILE=none.txt"); err == nil {
		t.Error("a missing secret file was accepted")
	}
	if _, err := load(t, "", "APP_LISTEN_FILE=secret.txt"); err == nil {
		t.Error("a _FILE twin of a setting that is not secret was accepted")
	}
}

func TestDumpHidesSecretsAndLoadsAgain(t *testing.T) {
	in, err := load(t, "", "APP_KEY=topsecret", "APP_URLS=a,b", "APP_LISTEN=x: #1")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Dump(&out, &in); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "topsecret") {
		t.Errorf("secret shown:\n%s", &out)
	}
	again, err := load(t, out.String())
	if err != nil {
		t.Fatal(err)
	}
	in.Key = ""
	if !reflect.DeepEqual(again, in) {
		t.Errorf("got %+v, want %+v", again, in)
	}
}

func TestMissingFileIsAProblem(t *testing.T) {
	err := Load(&sample{}, Source{File: "nowhere.yaml", Read: os.ReadFile})
	if err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("got %v", err)
	}
}
