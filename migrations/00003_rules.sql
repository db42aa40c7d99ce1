-- +goose Up

create table toggles (
    tenant_id   uuid not null,
    instance_id uuid not null,
    tool        text not null check (char_length(tool) between 1 and 100),
    action      text not null check (char_length(action) between 1 and 100),
    enabled     boolean not null,
    primary key (tenant_id, instance_id, tool, action),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

create table consents (
    tenant_id   uuid not null,
    instance_id uuid not null,
    tool        text not null check (char_length(tool) between 1 and 100),
    action      text not null check (char_length(action) between 1 and 100),
    mode        text not null check (mode in ('ask', 'console', 'preview', 'allow', 'deny')),
    primary key (tenant_id, instance_id, tool, action),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

create table notebook_levels (
    tenant_id   uuid not null,
    instance_id uuid not null,
    notebook_id text not null check (char_length(notebook_id) between 1 and 64),
    level       access_level not null,
    primary key (tenant_id, instance_id, notebook_id),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

create table switches ( -- a row: switched on
    tenant_id   uuid not null,
    instance_id uuid not null,
    switch      text not null check (char_length(switch) between 1 and 64),
    primary key (tenant_id, instance_id, switch),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

create table shares (
    tenant_id   uuid not null,
    id          uuid not null,
    instance_id uuid not null,
    notebook_id text not null check (char_length(notebook_id) between 1 and 64),
    member_id   uuid,
    team_id     uuid,
    level       access_level not null check (level <> 'none'),
    created_by  uuid references users on delete set null,
    created_at  timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, instance_id) references instances on delete cascade,
    foreign key (tenant_id, member_id) references memberships on delete cascade,
    foreign key (tenant_id, team_id) references teams on delete cascade,
    check (num_nonnulls(member_id, team_id) = 1)
);
create unique index shares_of_member on shares (tenant_id, instance_id, notebook_id, member_id) where member_id is not null;
create unique index shares_of_team on shares (tenant_id, instance_id, notebook_id, team_id) where team_id is not null;
create index on shares (tenant_id, member_id);
create index on shares (tenant_id, team_id);

select isolate('toggles');
select isolate('consents');
select isolate('notebook_levels');
select isolate('switches');
select isolate('shares');

create trigger policy after insert or delete or update on toggles for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on consents for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on notebook_levels for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on switches for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on shares for each row execute function policy_row_changed();

-- +goose Down
drop table shares, switches, notebook_levels, consents, toggles;
