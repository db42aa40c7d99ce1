package cluster_test

import (
	"testing"

	"go.uber.org/goleak"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	clustertest.Run(t, func(*testing.T) clustertest.Join {
		m := cluster.NewMemory(nil)
		return func(id string) cluster.Net { return m.Node(id, id+".example:7000") }
	})
}
