package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
)

// kernelAPI is the kernel's HTTP interface, used directly: the notes that prove
// the guard must not be made through it.
type kernelAPI struct {
	url, token string
	before     func() // runs before every request
}

// errNoEndpoint is the answer of a sample kernel that does not imitate an
// endpoint yet.
var errNoEndpoint = errors.New("the kernel has no such endpoint")

// has reports whether the kernel knows all the endpoints.
func (k *kernelAPI) has(paths ...string) (bool, error) {
	for _, p := range paths {
		resp, err := k.send(http.MethodPost, p+"/", "application/json", nil) // known ones redirect, and do nothing
		if err != nil {
			return false, err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return false, nil
		}
	}
	return true, nil
}

func (k *kernelAPI) send(method, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequest(method, k.url+"/api/"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Token "+k.token)
	req.Header.Set("Content-Type", contentType)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(req)
}

// post sends a request and gives the data of its answer.
func (k *kernelAPI) post(path string, body map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return k.do(path, "application/json", bytes.NewReader(raw))
}

func (k *kernelAPI) do(path, contentType string, body io.Reader) (json.RawMessage, error) {
	if k.before != nil {
		k.before()
	}
	resp, err := k.send(http.MethodPost, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s: %w", path, errNoEndpoint)
	}
	var answer struct {
		Code int             `json:"code"`
		Msg  string          `json:"msg"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("%s: HTTP %d: %w", path, resp.StatusCode, err)
	}
	if answer.Code != 0 {
		return nil, fmt.Errorf("%s: code %d: %s", path, answer.Code, answer.Msg)
	}
	return answer.Data, nil
}

// putFile writes a workspace file.
func (k *kernelAPI) putFile(path string, data []byte) error {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	err := errors.Join(form.WriteField("path", path), form.WriteField("isDir", "false"))
	file, fileErr := form.CreateFormFile("file", "file")
	if err = errors.Join(err, fileErr); err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	_, err = k.do("file/putFile", form.FormDataContentType(), &b)
	return err
}

// readFile gives a workspace file; ok is false for one that is not there.
func (k *kernelAPI) readFile(path string) (data []byte, ok bool, err error) {
	raw, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return nil, false, err
	}
	resp, err := k.send(http.MethodPost, "file/getFile", "application/json", bytes.NewReader(raw))
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	return data, resp.StatusCode == http.StatusOK, err
}

var sidebarPlace = regexp.MustCompile(`"sort":\s*\d+,?`)

// tree digests every file below a workspace folder. A notebook's place in the
// sidebar is left out: the kernel counts on when a notebook is made before it.
func (k *kernelAPI) tree(dir string) ([]string, error) {
	list, err := k.post("file/readDir", map[string]any{"path": dir})
	if err != nil {
		return nil, nil //nolint:nilerr // a folder that is not there has no files
	}
	var entries []struct {
		Name  string `json:"name"`
		IsDir bool   `json:"isDir"`
	}
	if err := json.Unmarshal(list, &entries); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	var files []string
	for _, e := range entries {
		path := dir + "/" + e.Name
		if e.IsDir {
			below, err := k.tree(path)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
			continue
		}
		data, _, err := k.readFile(path)
		if err != nil {
			return nil, err
		}
		if e.Name == "conf.json" {
			data = sidebarPlace.ReplaceAll(data, nil)
		}
		files = append(files, fmt.Sprintf("%s %x", path, hash(string(data))))
	}
	slices.Sort(files)
	return files, nil
}
