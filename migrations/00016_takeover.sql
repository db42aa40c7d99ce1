-- +goose Up

-- Until when another connector of the instance may have been sent calls: a request
-- id from before that, which this connector does not know, may have been carried
-- out by the other one.
alter table connectors add column others_until timestamptz;

-- Who took over from whom before now is not known: the careful answer. The owner
-- of the table reads all tenants for this one statement.
alter table connectors no force row level security;
update connectors c set others_until = now()
where exists (select from connectors o
    where o.tenant_id = c.tenant_id and o.instance_id = c.instance_id and o.id <> c.id and o.epoch > 0);
alter table connectors force row level security;

-- +goose Down
alter table connectors drop column others_until;
