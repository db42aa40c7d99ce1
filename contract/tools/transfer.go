package tools

// OneTimeURL is where the content of a call travels. The broker adds it to the
// answer; it works once, for five minutes.
type OneTimeURL struct {
	UploadURL   string `json:"uploadUrl,omitempty"`
	DownloadURL string `json:"downloadUrl,omitempty"`
	Method      string `json:"method,omitempty"`
	MaxBytes    int64  `json:"maxBytes,omitempty"`
	ExpiresAt   string `json:"expiresAt,omitempty"`
	Curl        string `json:"curl,omitempty"` // a command that does it
}
