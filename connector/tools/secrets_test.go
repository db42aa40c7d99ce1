package tools_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// What SiYuan says when it refuses can quote anything: the connector's token,
// addresses with passwords, notes. None of it reaches an agent, whichever request
// of whichever action it answers.
func TestNothingThatSiYuanSaysOfAnErrorReachesAnAgent(t *testing.T) {
	t.Parallel()
	const quoted = "kernel-token ghp_16C7e42F292c6912E7710c838347Ae178B4a https://ann:s3cret@dav.example.com"
	tried := 0
	for _, tool := range catalogue.New().Tools() {
		for _, a := range tool.Actions {
			t.Run(a.ID(), func(t *testing.T) {
				d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
				var refused, n atomic.Int64
				d.Between(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if n.Add(1) != refused.Load() {
							next.ServeHTTP(w, r)
							return
						}
						body, _ := json.Marshal(map[string]any{"code": -1, "msg": quoted, "data": nil}) // always has a JSON form
						w.Header().Set("Content-Type", "application/json")
						_, _ = w.Write(body)
					})
				})
				for k := int64(1); k <= 4; k++ {
					refused.Store(k)
					n.Store(0)
					r := d.call(owner(), a.ID(), a.Examples[0])
					tried++
					answer := string(r.Body)
					if r.Err != nil {
						answer = fmt.Sprintf("%s %s", r.Err.Body(), r.Err.Error())
					}
					for secret := range strings.FieldsSeq(quoted) {
						if strings.Contains(answer, secret) {
							t.Errorf("request %d: %s", k, answer)
						}
					}
					if n.Load() < k {
						break // it makes no more requests
					}
				}
			})
		}
	}
	if tried < 200 {
		t.Errorf("only %d calls", tried)
	}
}
