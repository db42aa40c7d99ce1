package brokerdoctor

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/broker/cluster/redisnet"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/tenants/postgres"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Doctor is what the probes are made from.
type Doctor struct {
	Config    broker.Config
	ConfigErr error // of loading or validating Config; everything else is skipped then
	Network   doctor.Network
	Free      func(folder string) (bytes uint64, err error) // nil: asks the system
}

// Names of probes that others need.
const (
	configuration = "configuration"
	database      = "database"
)

// Probes lists the probes in the order in which a person would look.
func (d *Doctor) Probes() []doctor.Probe {
	if d.Free == nil {
		d.Free = freeSpace
	}
	all := []doctor.Probe{
		{Name: configuration, Run: d.configuration},
		{Name: "data folder", Needs: []string{configuration}, Run: d.dataFolder},
		{Name: "disk space", Needs: []string{configuration}, Run: d.disk},
		{Name: "postgresql", Needs: []string{configuration}, Run: d.programs},
		{Name: database, Needs: []string{configuration}, Run: d.server},
		{Name: "clock", Needs: []string{database}, Run: d.clock},
		{Name: "schema", Needs: []string{database}, Run: d.schema},
		{Name: "isolation", Needs: []string{database}, Run: d.isolation},
		{Name: "recorder", Needs: []string{configuration, database}, Run: d.recorder},
		{Name: "push", Needs: []string{database}, Run: d.push},
		{Name: "signing keys", Needs: []string{database}, Run: d.signingKeys},
		{Name: "redis", Needs: []string{configuration}, Run: d.redis},
	}
	if d.ConfigErr != nil {
		return append(all, doctor.Probe{Name: "public url", Needs: []string{configuration}})
	}
	for i, base := range d.Config.PublicURLs {
		all = append(all, d.wayIn(i, base)...)
	}
	return all
}

func (d *Doctor) configuration(context.Context) doctor.Finding {
	if d.ConfigErr != nil {
		return doctor.Misconfigured("`siyuan-broker config dump` prints every setting with its meaning", "%v", d.ConfigErr)
	}
	c := d.Config
	where := "its own PostgreSQL in " + c.Data
	if c.DatabaseURL != "" {
		where = "the PostgreSQL of DATABASE_URL"
	}
	return doctor.Good("listens on %s, is reached at %s, uses %s", c.Listen, strings.Join(c.PublicURLs, ", "), where)
}

// inspector looks at the configured database.
func (d *Doctor) inspector() (postgres.Inspector, broker.Addresses, error) {
	a, err := d.Config.Addresses()
	return postgres.Inspector{ServiceDSN: a.Service, RecorderDSN: a.Recorder, OwnerDSN: a.Owner, Now: d.Network.Time}, a, err
}

func (d *Doctor) schema(ctx context.Context) doctor.Finding {
	in, a, err := d.inspector()
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	if a.Owner == "" {
		return doctor.Nothing("only the owner may read the schema's version: set DATABASE_DIRECT_URL to compare it")
	}
	have, newest, err := in.Schema(ctx)
	switch {
	case err != nil:
		return doctor.Doubtful("DATABASE_DIRECT_URL should be the owner role's address", "the schema's version cannot be read: %v", err)
	case have == 0:
		return doctor.Bad("run `siyuan-broker migrate`", "the database was never prepared")
	case have < newest:
		return doctor.Bad("run `siyuan-broker migrate`", "the schema has version %d, this program needs %d", have, newest)
	case have > newest:
		return doctor.Bad("update this program, or use the one that migrated the database", "the schema has version %d, this program knows only %d", have, newest)
	}
	return doctor.Good("version %d, as this program needs it", have)
}

func (d *Doctor) isolation(ctx context.Context) doctor.Finding {
	in, _, err := d.inspector()
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	problems, err := in.Isolation(ctx)
	return judged(problems, err, "the service role owns nothing and sees no row without naming a tenant")
}

func (d *Doctor) recorder(ctx context.Context) doctor.Finding {
	in, _, err := d.inspector()
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	problems, err := in.Recorder(ctx)
	if err != nil {
		return refusedBy("DATABASE_RECORDER_URL", err)
	}
	return judged(problems, nil, "the recorder role inserts call records and reads nothing")
}

func judged(problems []string, err error, good string) doctor.Finding {
	switch {
	case err != nil:
		return doctor.Bad("run `siyuan-broker migrate`", "the roles cannot be looked at: %v", err)
	case len(problems) > 0:
		return doctor.Bad("agents' calls are not safe before this is put right", "%s", strings.Join(problems, "\n"))
	}
	return doctor.Good("%s", good)
}

func (d *Doctor) push(ctx context.Context) doctor.Finding {
	_, a, err := d.inspector()
	if err == nil {
		err = postgres.CanListen(ctx, a.Listen)
	}
	if err != nil {
		return doctor.Misconfigured("", "%v", err)
	}
	return doctor.Good("changes reach this node at once")
}

// rotateLate is an age at which the broker's own rotation, every 90 days, must
// have failed.
const rotateLate = 100 * 24 * time.Hour

func (d *Doctor) signingKeys(ctx context.Context) doctor.Finding {
	db, err := broker.AttachDatabase(ctx, &d.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	defer db.Store.Close()
	keys, err := db.SigningKeys(ctx)
	if err != nil {
		return doctor.Misconfigured("set BROKER_MASTER_KEY to the key they were sealed with; if it is lost, delete the rows of signing_keys and give every agent a new token",
			"the signing keys cannot be opened: %v", err)
	}
	var newest time.Time
	for _, k := range keys {
		if k.NotBefore.After(newest) {
			newest = k.NotBefore
		}
	}
	age := d.Network.Time().Sub(newest)
	days := int(age / (24 * time.Hour))
	switch {
	case len(keys) == 0:
		return doctor.Nothing("none yet: the first start of the broker makes one")
	case age > rotateLate:
		return doctor.Doubtful("the broker rotates them every 90 days while it runs; its log says why it did not", "%d, the newest is %d days old", len(keys), days)
	}
	return doctor.Good("%d, opened with the master key; the newest is %d days old", len(keys), days)
}

func (d *Doctor) redis(ctx context.Context) doctor.Finding {
	if d.Config.RedisURL == "" {
		return doctor.Nothing("REDIS_URL is not set: this is a single node")
	}
	options, err := redisnet.Connect(d.Config.RedisURL)
	if err != nil {
		return doctor.Misconfigured("", "%v", err)
	}
	options.MaxRetries, options.DialerRetries = -1, 1
	logging.Disable() // it would repeat on stderr what is reported here
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	began := d.Network.Time()
	if err := client.Ping(ctx).Err(); err != nil {
		f := doctor.Unreachable(err)
		f.Found = fmt.Sprintf("Redis does not answer: %s", f.Found)
		return f
	}
	return doctor.Good("answers in %s", d.Network.Time().Sub(began).Round(100*time.Microsecond))
}
