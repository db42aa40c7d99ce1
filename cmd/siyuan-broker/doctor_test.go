package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/cmd/internal/cli"
)

func TestATestPersonsPasswordComesFromTheEnvironmentOrAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(" a b \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ env, file, want string }{
		"in the environment": {"secret", "", "secret"},
		"in a file":          {"", file, " a b "},
		"in both":            {"secret", file, ""},
		"in neither":         {"", "", ""},
		"in a missing file":  {"", file + ".none", ""},
	} {
		t.Setenv("DOCTOR_PASSWORD", c.env)
		t.Setenv("DOCTOR_PASSWORD_FILE", c.file)
		if got, err := testPassword(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestDoctorRefusesWhatItCannotDoAndWhatGivesThePasswordAway(t *testing.T) {
	t.Setenv("DOCTOR_PASSWORD", "")
	t.Setenv("DOCTOR_PASSWORD_FILE", "")
	for args, says := range map[string]string{
		"doctor --email ann@example.org":                            "needs the URL",
		"doctor https://notes.example --email ann@example.org":      "DOCTOR_PASSWORD",
		"doctor https://ann:secret@notes.example":                   "can read a command line",
		"doctor https://notes.example --password secret":            "unknown flag",
		"doctor notes.example":                                      "is not a URL",
		"doctor https://notes.example https://other.notes.example/": "one URL",
	} {
		var said bytes.Buffer
		if code := cli.Run(root(), strings.Fields(args), &said); code != cli.ExitUsage || !strings.Contains(said.String(), says) {
			t.Errorf("%s: exit code %d, %s", args, code, &said)
		}
	}
}
