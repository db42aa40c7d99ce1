package main

import "testing"

func TestAPolicyThatAnActionWouldNotFollowIsRefused(t *testing.T) {
	t.Parallel()
	for args, ok := range map[[2]string]bool{
		{"document.remove", "ask"}: true, {"document.remove", "console"}: true, {"document.remove", "preview"}: true,
		{"document.remove", "allow"}: true, {"document.remove", "deny"}: true, {"document.remove", "never"}: false,
		{"document.erase", "ask"}: false, {"document", "ask"}: false, {"document.get_doc", "ask"}: false,
		{"notebook.remove", "preview"}: false, {"notebook.remove", "allow"}: true, {"search.find_replace", "preview"}: false,
	} {
		if _, _, err := readConsent(args[0], args[1]); (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
	}
}
