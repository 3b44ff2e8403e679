-- Requests, their files, who moves them now, and the attempts at them. Times are
-- nanoseconds since 1970, 0 is never. States of files are those of machine.go:
-- 1 ready, 2 resting, 3 leased, 4 done, 5 skipped, 6 failed, 7 dropped; 8 and 9
-- wait for a tape system, 10 for another file of the job.

-- What was asked for, and its counters. Whoever changes a file of a request, or
-- anything that hangs on it, locks the request's row first.
CREATE TABLE request (
  id {{id}},
  made_by {{text}} NOT NULL,
  key {{text}} NOT NULL,
  dataset {{text}} NOT NULL,
  block {{text}} NOT NULL,
  dest {{text}} NOT NULL,
  sources {{text}} NOT NULL,    -- sites, JSON; empty: any
  mode {{text}} NOT NULL,
  share {{text}} NOT NULL,
  priority BIGINT NOT NULL,
  approve BOOLEAN NOT NULL,
  expires BIGINT NOT NULL,
  max_tries BIGINT NOT NULL,
  unchecked BOOLEAN NOT NULL,
  comment {{text}} NOT NULL,
  asked_files BIGINT NOT NULL,  -- as the catalog knew them when it was submitted
  asked_bytes BIGINT NOT NULL,
  status {{text}} NOT NULL,
  decided {{text}} NOT NULL,
  reason {{text}} NOT NULL,
  made BIGINT NOT NULL,
  began BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  stop {{text}} NOT NULL,       -- the status that it is to end with, if it was stopped
  work {{text}} NOT NULL,       -- resolve, drop, retry: what Work has still to do
  place BIGINT NOT NULL,        -- the last item that drop or retry have seen
  at_name {{text}} NOT NULL,    -- the last name that resolve has seen
  resolved BOOLEAN NOT NULL,
  files_n BIGINT NOT NULL,
  bytes_n BIGINT NOT NULL,
  ready_n BIGINT NOT NULL,
  resting_n BIGINT NOT NULL,
  leased_n BIGINT NOT NULL,
  done_n BIGINT NOT NULL,
  skipped_n BIGINT NOT NULL,
  failed_n BIGINT NOT NULL,
  dropped_n BIGINT NOT NULL,
  there_bytes BIGINT NOT NULL,  -- of files done and skipped
  attempts_n BIGINT NOT NULL,
  upto BIGINT NOT NULL DEFAULT 0,              -- the first number of the catalog's files that are newer than the request
  job {{text}} NOT NULL DEFAULT '',
  replaces BOOLEAN NOT NULL DEFAULT FALSE,
  orderly BOOLEAN NOT NULL DEFAULT FALSE,
  timeout BIGINT NOT NULL DEFAULT 0,
  streams BIGINT NOT NULL DEFAULT 0,
  terms {{text}} NOT NULL DEFAULT '',          -- of a job, JSON
  deletes BOOLEAN NOT NULL DEFAULT FALSE,      -- as terms say
  staging_n BIGINT NOT NULL DEFAULT 0,
  archiving_n BIGINT NOT NULL DEFAULT 0,
  held_n BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX request_key ON request (made_by, key) WHERE key <> '';
CREATE INDEX request_live ON request (dest) WHERE ended = 0;
CREATE INDEX request_work ON request (id) WHERE work <> '';
CREATE INDEX request_job ON request (job) WHERE job <> '';
-- Finds the requests of a destination that have ready files, however many others are open.
CREATE INDEX request_ready ON request (dest) WHERE ended = 0 AND stop = '' AND ready_n > 0;
-- Requests are many after a year, and few of them are open. Each list, and each look of the clock, has an index.
CREATE INDEX request_open ON request (id) WHERE ended = 0;
CREATE INDEX request_expires ON request (expires) WHERE ended = 0 AND expires > 0;
CREATE INDEX request_ended ON request (ended) WHERE ended > 0;
CREATE INDEX request_dataset ON request (dataset, id);
CREATE INDEX request_by ON request (made_by, id);
-- Of an expression: SQLite would take one of the column for the open requests of a destination as well.
CREATE INDEX request_to ON request ((dest || ''), id);
CREATE INDEX request_status ON request (status, id);

-- The names of the files that a request asks for; none: all of the dataset or block.
CREATE TABLE wanted (
  request BIGINT NOT NULL,
  name {{text}} NOT NULL,
  PRIMARY KEY (request, name)
) {{keyed}};

-- A lane is the files of a request that can come from the same sites. So a
-- site that is down costs nothing: its lanes are passed over.
CREATE TABLE lane (
  id {{id}},
  request BIGINT NOT NULL,
  sites {{text}} NOT NULL,      -- names, sorted, with commas between
  ready BIGINT NOT NULL,
  UNIQUE (request, sites)
);

-- The files of requests. The id is the request's times 100,000,000 plus the
-- file's number in it, so that files of a request lie together.
CREATE TABLE item (
  id {{key}},
  file BIGINT NOT NULL,         -- in the catalog; 0: it has none
  name {{text}} NOT NULL,
  size BIGINT NOT NULL,
  adler {{text}} NOT NULL,
  state BIGINT NOT NULL,
  lane BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  tries BIGINT NOT NULL,
  pauses BIGINT NOT NULL,
  due BIGINT NOT NULL,
  source {{text}} NOT NULL,
  mode {{text}} NOT NULL,
  fault {{text}} NOT NULL,
  reason {{text}} NOT NULL,
  ended BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  trail {{text}} NOT NULL,
  again BOOLEAN NOT NULL
);
CREATE INDEX item_ready ON item (lane, id) WHERE state = 1;
CREATE INDEX item_due ON item (due) WHERE state = 2;
CREATE INDEX item_rest ON item (state, id) WHERE state IN (2, 5, 6, 7);

-- Who moves which file now. The second key is why no file is brought to a site
-- by two requests at once.
CREATE TABLE lease (
  item {{key}},
  epoch BIGINT NOT NULL,
  dest {{text}} NOT NULL,
  file BIGINT NOT NULL,
  source {{text}} NOT NULL,
  path {{text}} NOT NULL,       -- at the source
  mode {{text}} NOT NULL,
  size BIGINT NOT NULL,
  began BIGINT NOT NULL,
  heard BIGINT NOT NULL,
  until BIGINT NOT NULL,
  missing BOOLEAN NOT NULL,     -- it ran out; the destination is asked
  stage {{text}} NOT NULL,
  moved BIGINT NOT NULL,
  stop {{text}} NOT NULL DEFAULT '',           -- why the file was cancelled by itself: its mover is to abort it
  UNIQUE (dest, file)
);
CREATE INDEX lease_until ON lease (until);

-- Attempts, written once. The second of the same epoch is one that came after
-- its lease was given up.
CREATE TABLE attempt (
  item BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  late BIGINT NOT NULL,
  source {{text}} NOT NULL,
  dest {{text}} NOT NULL,
  mode {{text}} NOT NULL,
  fault {{text}} NOT NULL,
  reason {{text}} NOT NULL,
  after BIGINT NOT NULL,
  size BIGINT NOT NULL,
  adler {{text}} NOT NULL,
  verified BOOLEAN NOT NULL,
  existed BOOLEAN NOT NULL,
  moved BIGINT NOT NULL,
  resumed BIGINT NOT NULL,
  began BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  cpu DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (item, epoch, late)
) {{keyed}};
CREATE INDEX attempt_ended ON attempt (ended);

-- Destinations that are full, until when nothing is begun there.
CREATE TABLE hold (
  dest {{text}} PRIMARY KEY,
  until BIGINT NOT NULL,
  times BIGINT NOT NULL,
  reason {{text}} NOT NULL
);

-- What happened to requests, for those who wait for it. Numbers come from
-- event_last, whose row is locked until the commit, so that nobody sees a number
-- before a smaller one.
CREATE TABLE event (
  id {{key}},
  at BIGINT NOT NULL,
  request BIGINT NOT NULL,
  item BIGINT NOT NULL,
  status {{text}} NOT NULL,     -- of the request, after it
  text {{text}} NOT NULL
);
CREATE TABLE event_last (one {{key}}, id BIGINT NOT NULL);
INSERT INTO event_last (one, id) VALUES (1, 0);

-- Jobs of URL pairs. The files of a job are in its requests, one for each destination and activity. pair has what
-- the catalog has of other files; file of such an item is negative, a hash of its destination. Jobs are found by the
-- columns from vo on: state is the state with which a job has ended, as its API names it, and empty while it is open;
-- user_name is another name of the user, and empty if there is none; source and dest are storage elements, and empty
-- if there are several.
CREATE TABLE job (
  id {{text}} PRIMARY KEY,
  made_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  params {{text}} NOT NULL,     -- JSON of the API that it came by
  vo {{text}} NOT NULL,
  state {{text}} NOT NULL,
  ended BIGINT NOT NULL DEFAULT 0,
  user_name {{text}} NOT NULL,
  credential {{text}} NOT NULL,
  source {{text}} NOT NULL,
  dest {{text}} NOT NULL
);
CREATE INDEX job_state ON job (state, made);
CREATE INDEX job_ended ON job (state, ended);
CREATE INDEX job_by ON job (made_by, state, made, ended);
CREATE INDEX job_user ON job (user_name, state, made, ended) WHERE user_name <> '';
CREATE INDEX job_vo ON job (vo, state, made, ended);
CREATE INDEX job_from ON job (source, state, made, ended);
CREATE INDEX job_to ON job (dest, state, made, ended);
CREATE TABLE pair (
  item {{key}},
  number BIGINT NOT NULL,       -- of the file in its job
  sources {{text}} NOT NULL,    -- JSON, in the order of the submission
  dest {{text}} NOT NULL,       -- URL
  params {{text}} NOT NULL,     -- JSON of the API that it came by
  secret {{blob}}               -- encrypted by who stores it
);

-- Files that wait for a tape system, or whose disk copies it keeps for them.
CREATE TABLE tape (
  item BIGINT NOT NULL,
  kind BIGINT NOT NULL,         -- 1: its source is brought online, 2: its destination is archived
  step BIGINT NOT NULL,         -- of tape.go
  site {{text}} NOT NULL,
  path {{text}} NOT NULL,       -- below the site's root
  metadata {{text}} NOT NULL,   -- for the tape system, JSON
  request {{text}} NOT NULL,    -- id that the tape system gave; empty: it was not asked yet
  began BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  until BIGINT NOT NULL,        -- when the file fails
  due BIGINT NOT NULL,          -- when the tape system is asked next; 0: not
  PRIMARY KEY (item, kind)
) {{keyed}};
CREATE INDEX tape_due ON tape (due) WHERE due > 0;

-- Files of jobs with several hops that wait for another file of the job to end.
CREATE TABLE hop (
  item {{key}},
  after BIGINT NOT NULL,        -- the item that it waits for
  made BIGINT NOT NULL          -- the item whose copy it removes; 0: it is a hop, and goes if the one before has arrived
);

-- Changes of files of jobs that are to be published, those of a file in their order.
CREATE TABLE file_change (
  id {{id}},
  at BIGINT NOT NULL,
  item BIGINT NOT NULL,
  epoch BIGINT NOT NULL,        -- of its latest lease
  was BIGINT NOT NULL,          -- state before; 0: it was added
  state BIGINT NOT NULL,
  source {{text}} NOT NULL      -- site of that lease; empty: it had none
);
