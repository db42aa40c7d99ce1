package samplekernel

import (
	"errors"

	"siyuan-broker/connector/siyuan/samplekernel/index"
)

func queryRoutes() map[string]route {
	return map[string]route{
		"/api/query/sql":               {serve: querySQL},
		"/api/sqlite/flushTransaction": {serve: flushTransaction, noBody: true},
	}
}

func querySQL(k *Kernel, a args) (any, error) {
	stmt, err := a.needText("stmt")
	if err != nil {
		return nil, err
	}
	rows, err := k.index.Query(stmt, a.strOr("mode", ""))
	var refused index.Refused
	switch {
	case errors.As(err, &refused):
		return nil, fail(refused.Message)
	case err != nil:
		return nil, failCode(1, err.Error())
	case rows == nil:
		return nil, nil
	}
	return rows, nil
}

func flushTransaction(k *Kernel, _ args) (any, error) {
	k.flush()
	return nil, nil
}
