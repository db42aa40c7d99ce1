package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"siyuan-broker/contract"
)

// Life is how long a question is good, from when it was put to when the call is
// let through.
const Life = 10 * time.Minute

// Bounds of what waits at one time.
const (
	MaxWaiting   = 64 // altogether
	MaxPrincipal = 16 // of one agent
)

// maxBytes bounds a question's file: 21 items of three texts of 80 characters.
const maxBytes = 64 << 10

// ErrTooMany means that more questions wait than people answer.
var ErrTooMany = errors.New("too many calls wait for the home owner")

// Call is one call of one agent, as it is asked about. Equal values are the same
// call.
type Call struct {
	Principal string `json:"principal"` // tenant, instance, member and agent
	RequestID string `json:"request_id"`
	Tool      string `json:"tool"`
	Action    string `json:"action"`
	Arguments string `json:"arguments"` // digest of the canonical arguments
}

// Question is a call that waits, with what the owner is shown.
type Question struct {
	ID      string           `json:"id"`
	Call    Call             `json:"call"`
	Agent   string           `json:"agent"` // its name, for display only
	Preview contract.Preview `json:"preview"`
	Asked   time.Time        `json:"asked"`
	Expires time.Time        `json:"expires"`
	Answer  Answer           `json:"-"`
}

// Answer is what the owner said.
type Answer string

// The answers. They are also how the file of an answer is named.
const (
	Waiting  Answer = ""
	Approved Answer = "approved"
	Declined Answer = "declined"
)

// Standing is how a call stands with the owner.
type Standing string

// The standings of a call.
const (
	Unasked Standing = "unasked"
	Asked   Standing = "asked"
	Granted Standing = "granted" // and used up by having been told
	Refused Standing = "refused"
	Lapsed  Standing = "lapsed" // nobody answered in time, or the yes came to nothing
	Other   Standing = "other"  // the owner was asked about another call under this request id
)

// Folder is where questions and answers lie. The connector has one; commands make
// their own on the same path.
type Folder struct {
	path string
	now  func() time.Time
	mu   sync.Mutex // of the connector: claims and questions come one after the other
}

// In is the folder of a connector's data folder. It is made when it is needed.
func In(data string, now func() time.Time) *Folder {
	return &Folder{path: filepath.Join(data, "approvals"), now: now}
}

// Claim tells how a call stands. Granted is told once: the question is gone by
// then, so that the yes cannot be used again whatever happens next.
func (f *Folder) Claim(c Call) (Standing, Question, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.list()
	if err != nil {
		return "", Question{}, err
	}
	i := slices.IndexFunc(all, func(q Question) bool {
		return q.Call.Principal == c.Principal && q.Call.RequestID == c.RequestID
	})
	if i < 0 {
		return Unasked, Question{}, nil
	}
	q := all[i]
	switch {
	case !q.Expires.After(f.now()):
		return Lapsed, q, f.remove(q)
	case q.Call != c:
		return Other, q, nil
	case q.Answer == Declined:
		return Refused, q, nil
	case q.Answer == Approved:
		return Granted, q, f.remove(q)
	}
	return Asked, q, nil
}

// Ask puts a question to the owner, for a call that has none. Questions that
// nobody can use any more are cleared away. Errors: ErrTooMany.
func (f *Folder) Ask(c Call, agent string, p contract.Preview) (Question, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.list()
	if err != nil {
		return Question{}, err
	}
	now := f.now()
	waiting, own := 0, 0
	for _, q := range all {
		if !q.Expires.After(now) {
			if err := f.remove(q); err != nil {
				return Question{}, err
			}
			continue
		}
		waiting++
		if q.Call.Principal == c.Principal {
			own++
		}
	}
	if waiting >= MaxWaiting || own >= MaxPrincipal {
		return Question{}, ErrTooMany
	}
	q := Question{
		ID: strings.ToLower(contract.RandomID("apr")), Call: c, Agent: contract.PlainText(agent, contract.PreviewRunes),
		Preview: p.Clean(), Asked: now.UTC(), Expires: now.Add(Life).UTC(),
	}
	return q, f.write(q)
}

// List gives the questions that have not expired, the oldest first.
func (f *Folder) List() ([]Question, error) {
	all, err := f.list()
	return slices.DeleteFunc(all, func(q Question) bool { return !q.Expires.After(f.now()) }), err
}

// Decide answers a question, which may be named by the beginning of its id. A no
// can be said after a yes that was not used yet, but not the other way round.
func (f *Folder) Decide(id string, a Answer) (Question, error) {
	all, err := f.List()
	if err != nil {
		return Question{}, err
	}
	found := slices.DeleteFunc(all, func(q Question) bool { return id == "" || !strings.HasPrefix(q.ID, id) })
	switch {
	case len(found) == 0:
		return Question{}, contract.Fail(contract.NotFound, "No call waits under the id %q.", id).
			WithHint("It may have expired or been used. List what waits with: siyuan-connector approvals")
	case len(found) > 1:
		return Question{}, contract.Fail(contract.Ambiguous, "%d calls that wait have an id that begins with %q.", len(found), id)
	}
	q := found[0]
	if q.Answer == Declined && a == Approved {
		return q, contract.Fail(contract.ConfirmationDeclined, "You declined %s already; the agent has been told so, or will be.", q.ID)
	}
	if q.Answer == a {
		return q, nil
	}
	file, err := os.OpenFile(f.file(q.ID, a), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return q, fmt.Errorf("keep the answer: %w", err)
	}
	q.Answer = a
	return q, nil
}

func (f *Folder) file(id string, a Answer) string {
	if a == Waiting {
		return filepath.Join(f.path, id+".json")
	}
	return filepath.Join(f.path, id+"."+string(a))
}

// list reads all questions with their answers; a no outweighs a yes.
func (f *Folder) list() ([]Question, error) {
	entries, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list what waits for the home owner: %w", err)
	}
	var all []Question
	for _, e := range entries {
		id, isQuestion := strings.CutSuffix(e.Name(), ".json")
		if !isQuestion {
			continue
		}
		q, err := f.read(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // used or cleared away meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, a := range []Answer{Approved, Declined} {
			if _, err := os.Stat(f.file(q.ID, a)); err == nil {
				q.Answer = a
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("read the home owner's answer: %w", err)
			}
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Question) int { return a.Asked.Compare(b.Asked) })
	return all, nil
}

func (f *Folder) read(id string) (q Question, err error) {
	name := f.file(id, Waiting)
	file, err := os.Open(name)
	if err != nil {
		return q, fmt.Errorf("read what waits for the home owner: %w", err)
	}
	defer file.Close()
	if err := json.NewDecoder(io.LimitReader(file, maxBytes)).Decode(&q); err != nil || q.ID != id {
		return q, fmt.Errorf("%s is damaged; delete it, and the agent can ask again", name)
	}
	return q, nil
}

// write lets the question appear whole.
func (f *Folder) write(q Question) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make the folder of what waits for the home owner: %w", err)
	}
	tmp, err := os.CreateTemp(f.path, ".question-*") // mode 0600
	if err != nil {
		return fmt.Errorf("ask the home owner: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(append(b, '\n'))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("ask the home owner: %w", err)
	}
	return os.Rename(tmp.Name(), f.file(q.ID, Waiting))
}

// remove uses a question up. The question goes first: without it an answer that
// stays behind, or comes late, means nothing.
func (f *Folder) remove(q Question) error {
	if err := os.Remove(f.file(q.ID, Waiting)); err != nil {
		return fmt.Errorf("use up what the home owner was asked: %w", err)
	}
	for _, a := range []Answer{Approved, Declined} {
		if err := os.Remove(f.file(q.ID, a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("use up the home owner's answer: %w", err)
		}
	}
	return nil
}
