-- Times are microseconds since 1970 UTC, unless a comment says otherwise. Ids of
-- claims and rows are the first 16 bytes of a SHA-256; see onceward.ID.

-- The dedupe ledger: which event has an identity, for ever.
create table onceward_claims (
  id     blob primary key,
  event  integer not null,
  digest blob not null,
  source text not null
) strict, without rowid;

-- What is known of an identity's other bytes. outcome: 2 duplicate, 3 conflict.
create table onceward_variants (
  claim   blob not null,
  digest  blob not null,
  event   integer not null,
  outcome integer not null,
  primary key (claim, digest)
) strict, without rowid;

-- The events as they came. time is the sender's, in nanoseconds. flags: 1 the
-- signature does not cover the body, 2 the key is the digest. outcome: 1 new,
-- 2 duplicate, 3 conflict. body_of is the event of the same delivery that has
-- headers and body; they are null here then.
create table onceward_events (
  id       integer primary key,
  at       integer not null,
  source   text not null,
  account  text not null,
  mode     text not null,
  origin   integer not null,
  key      text not null,
  type     text not null,
  time     integer,
  item     integer not null,
  digest   blob not null,
  flags    integer not null,
  outcome  integer not null,
  "of"     integer not null,
  revision integer not null,
  body_of  integer not null,
  method   text not null,
  target   text not null,
  remote   text not null,
  headers  blob,
  body     blob
) strict;

-- Further deliveries of known events; only ever appended to.
create table onceward_repeats (
  claim  blob not null,
  event  integer not null,
  at     integer not null,
  remote text not null,
  digest blob not null
) strict;
create index onceward_repeats_event on onceward_repeats (event);

-- What events say about entities, in order of arrival at each. A held fact that
-- names no entity stands under its event's claim. verdict: 1 applied, 2 stale,
-- 3 same, 4 held.
create table onceward_facts (
  entity   blob not null,
  seq      integer not null,
  event    integer not null,
  rule     text not null,
  kind     text not null,
  key      text not null,
  status   text not null,
  verdict  integer not null,
  version  integer not null,
  revision integer not null,
  "from"   text not null,
  "to"     text not null,
  ord      blob not null,
  against  blob not null,
  decided  text not null,
  patch    text not null,
  primary key (entity, seq)
) strict;
create index onceward_facts_event on onceward_facts (event);
create index onceward_facts_held on onceward_facts (revision, event) where verdict = 4;

-- The entities. Version 0 holds nothing yet but held facts. facts is the number
-- of the newest fact. There is one unique index and no other: see the guard.
create table onceward_rows (
  id       blob primary key,
  source   text not null,
  account  text not null,
  mode     text not null,
  kind     text not null,
  key      text not null,
  status   text not null,
  told     text not null,
  version  integer not null,
  revision integer not null,
  epoch    integer,
  tie      text not null,
  facts    integer not null,
  data     text not null,
  state    blob not null,
  created  integer not null,
  updated  integer not null
) strict;
create index onceward_rows_name on onceward_rows (source, kind, key, account, mode);

-- The documented view, which stays as it is: times as RFC 3339 in UTC, tie as
-- the names of parts with commas between them.
create view onceward_entities as
  select source, account, mode, kind, key, status, told, version, tie, data,
         strftime('%Y-%m-%dT%H:%M:%S', created / 1000000, 'unixepoch') || printf('.%06dZ', created % 1000000) as created,
         strftime('%Y-%m-%dT%H:%M:%S', updated / 1000000, 'unixepoch') || printf('.%06dZ', updated % 1000000) as updated
  from onceward_rows where version > 0;

-- Unfinished and dead jobs.
create table onceward_jobs (
  handler  text not null,
  lane     blob not null,
  version  integer not null,
  change   text not null,
  attempts integer not null,
  due      integer not null,
  token    integer not null,
  dead     integer not null,
  error    text not null,
  created  integer not null,
  primary key (handler, lane, version)
) strict;
create index onceward_jobs_due on onceward_jobs (handler, due) where dead = 0;
create index onceward_jobs_dead on onceward_jobs (handler) where dead = 1;

-- Rejected deliveries, a ring per source; its size beside it.
create table onceward_quarantine (
  id      integer primary key autoincrement,
  source  text not null,
  at      integer not null,
  reason  text not null,
  bytes   integer not null,
  method  text not null,
  target  text not null,
  remote  text not null,
  headers blob not null,
  body    blob not null
) strict;
create index onceward_quarantine_source on onceward_quarantine (source, id);
create table onceward_quarantine_size (
  source text primary key,
  count  integer not null,
  bytes  integer not null
) strict, without rowid;

-- The revisions of each source's mapping.
create table onceward_mappings (
  source   text not null,
  revision integer not null,
  hash     text not null,
  doc      blob not null,
  at       integer not null,
  primary key (source, revision),
  unique (source, hash)
) strict, without rowid;

-- How many there are of what Stats would else have to walk through tables for.
create table onceward_counts (
  id        integer primary key check (id = 1),
  events    integer not null default 0,
  repeats   integer not null default 0,
  conflicts integer not null default 0,
  entities  integer not null default 0,
  applied   integer not null default 0,
  stale     integer not null default 0,
  same      integer not null default 0,
  held      integer not null default 0
) strict;
insert into onceward_counts (id) values (1);

-- The node number drawn last, and how often Ping has written.
create table onceward_meta (
  name  text primary key,
  value integer not null
) strict, without rowid;
insert into onceward_meta (name, value) values ('node', -1), ('ping', 0);
