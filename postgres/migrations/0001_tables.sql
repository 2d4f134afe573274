-- Texts are compared by their bytes: collate "C". Ids of claims and rows are the
-- first 16 bytes of a SHA-256; see onceward.ID.

create table {schema} (
	version integer primary key,
	applied timestamptz not null default now()
);

-- The dedupe ledger. It is never purged and never partitioned, and must have
-- exactly one unique index: with a second one ON CONFLICT fails under races.
create table {claims} (
	id     uuid primary key,
	event  bigint not null,
	digest uuid not null,
	source text collate "C" not null
);

-- What is known of a claim's other digests.
create table {variants} (
	claim   uuid not null,
	digest  uuid not null,
	event   bigint not null,
	outcome smallint not null, -- 2 duplicate, 3 conflict
	primary key (claim, digest)
);

create table {events} (
	id         bigint primary key,
	at         timestamptz not null,
	source     text collate "C" not null,
	account    text collate "C" not null,
	mode       text collate "C" not null,
	origin     smallint not null,
	key        text collate "C" not null,
	type       text collate "C" not null,
	time       bigint,             -- the sender's, in nanoseconds
	item       integer not null,
	digest     uuid not null,
	unsigned   boolean not null,
	digest_key boolean not null,
	method     text not null,
	target     bytea not null,     -- may hold bytes that are no text
	remote     text not null,
	headers    bytea,
	body       bytea,
	body_of    bigint not null,    -- the event whose row has headers and body, 0 for this one
	outcome    smallint not null,  -- 1 new, 2 duplicate, 3 conflict
	"of"       bigint not null,    -- the first event of the key, 0 if it is this one
	revision   bigint not null
);
create index {prefix}events_source on {events} (source, id);
do $lz4$ begin
	execute 'alter table {events} alter column body set compression lz4';
exception when others then
	null; -- an older server, or one built without it
end $lz4$;

create table {facts} (
	entity      uuid not null,     -- or the claim, for a held fact that names no entity
	seq         bigint not null,
	event       bigint not null,
	place       integer not null,  -- among the facts of the event
	verdict     smallint not null, -- 1 applied, 2 stale, 3 same, 4 held
	version     bigint not null,
	revision    bigint not null,
	status_from text collate "C" not null,
	status_to   text collate "C" not null,
	ord         bytea not null,
	against     bytea not null,
	decided     text not null,
	told        text not null,     -- JSON, as data below
	primary key (entity, seq)
);
create index {prefix}facts_event on {facts} (event);
create index {prefix}facts_held on {facts} (revision, event) where verdict = 4;

-- One row an entity. As with claims there is exactly one unique index, and none
-- on what changes with each fact, so that updates stay within their page. A row is
-- born empty and filled in the same transaction: a page that is two thirds empty
-- has room for what it becomes, and is no emptier afterwards than others.
create table {rows} (
	id       uuid primary key,
	source   text collate "C" not null,
	account  text collate "C" not null,
	mode     text collate "C" not null,
	kind     text collate "C" not null,
	key      text collate "C" not null,
	status   text collate "C" not null default '',
	told     text collate "C" not null default '',
	version  bigint not null default 0,
	revision bigint not null default 0,
	facts    bigint not null default 0, -- the number of the newest fact of any verdict
	tie      text not null default '',
	data     text not null default '{}', -- JSON, which only we write: jsonb refuses \u0000 and great exponents, json reads it through once more
	state    bytea not null default '',
	created  timestamptz not null,
	updated  timestamptz not null
) with (fillfactor = 35);
-- A key may be longer than an index takes.
create index {prefix}rows_name on {rows} (source, kind, left(key, 200));

create table {jobs} (
	handler    text collate "C" not null,
	lane       uuid not null,
	version    bigint not null,
	change     text not null,      -- JSON, as data above
	attempts   integer not null default 0,
	due        timestamptz not null,
	token      bigint not null default 0,
	dead       boolean not null default false,
	error      text not null default '',
	primary key (lane, version, handler) -- the lane first: it tells them apart at once
) with (autovacuum_vacuum_scale_factor = 0.02);
create index {prefix}jobs_due on {jobs} (handler, due) where not dead;

-- Further deliveries, appended only.
create table {repeats} (
	event  bigint not null,
	claim  uuid not null,
	digest uuid not null,
	at     timestamptz not null,
	remote text not null
);
create index {prefix}repeats_event on {repeats} (event);

create table {quarantine} (
	id      bigint generated always as identity primary key,
	source  text collate "C" not null,
	reason  text not null,
	at      timestamptz not null,
	method  text not null,
	target  bytea not null,
	remote  text not null,
	headers bytea,
	body    bytea,
	bytes   bigint not null
);
create index {prefix}quarantine_source on {quarantine} (source, id);

create table {mappings} (
	source   text collate "C" not null,
	revision bigint not null,
	hash     text collate "C" not null,
	doc      text not null,
	created  timestamptz not null,
	primary key (source, revision),
	unique (source, hash)
);

-- One number, which a ping raises.
create table {meta} (
	name  text primary key,
	value bigint not null
);
insert into {meta} (name, value) values ('ping', 0);

create sequence {nodes} minvalue 0 maxvalue 1023 start 0 cycle;

-- What people may read; its columns stay. tie are names of parts with commas
-- between them.
create view {entities} as
	select source, account, mode, kind, key, status, told, version, tie, data::json as data, created, updated
	from {rows} where version > 0;
