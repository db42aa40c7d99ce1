package main

import (
	"bytes"
	"strings"
	"testing"

	"siyuan-broker/cmd/internal/cli"
)

func TestAClientThatCannotWorkIsAUsageErrorThatSaysWhy(t *testing.T) {
	for why, args := range map[string][]string{
		"needs a redirect URI": {"client", "add", "--id", "own"},
		"must be https":        {"client", "add", "--id", "own", "--redirect", "http://app.example/cb"},
		"client id":            {"client", "add", "--id", "https://app.example/c", "--redirect", "https://app.example/cb"},
		"client list":          {"client", "remove"},
	} {
		var said bytes.Buffer
		if code := cli.Run(root(), args, &said); code != cli.ExitUsage || !strings.Contains(said.String(), why) {
			t.Errorf("%v: exit code %d, %s", args, code, said.String())
		}
	}
}
