package search

import (
	"context"
	"fmt"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

const defaultRows = 200

func querySQL(ctx context.Context, r *tools.Request, in catalogue.SearchQuerySQLIn) (out catalogue.SearchQuerySQLOut, err error) {
	limit := tools.Or(in.MaxRows, defaultRows)
	rows, more, err := r.Session.SQL(ctx, in.Stmt, limit)
	if err != nil {
		return out, err
	}
	out.Data = catalogue.Fit(rows, limit, r.Budget, catalogue.Chars[guard.Record])
	out.Showing = len(out.Data)
	switch {
	case len(out.Data) < len(rows):
		out.Truncated = true
		out.Hint = fmt.Sprintf("More rows would have more than %d characters. Name fewer columns, or get the rest with %s.", r.Budget, next(out.Showing))
	case more:
		out.Truncated = true
		out.Hint = fmt.Sprintf("There are more than %d rows. Raise maxRows (at most 1000), count them with SELECT count(*), or get the rest with %s.", limit, next(out.Showing))
	case len(rows) == 0:
		out.Hint = "No row matches in the notebooks you may read."
	}
	return out, nil
}

// next is how a statement goes on behind the rows shown.
func next(shown int) string { return fmt.Sprintf("ORDER BY … LIMIT 1000 OFFSET %d", shown) }
