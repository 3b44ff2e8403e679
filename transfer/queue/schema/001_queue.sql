-- Requests, their files, who moves them now, and the attempts at them. Times are
-- nanoseconds since 1970, 0 is never. States of files are those of machine.go:
-- 1 ready, 2 resting, 3 leased, 4 done, 5 skipped, 6 failed, 7 dropped.

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
  attempts_n BIGINT NOT NULL
);
CREATE UNIQUE INDEX request_key ON request (made_by, key) WHERE key <> '';
CREATE INDEX request_live ON request (dest) WHERE ended = 0;
CREATE INDEX request_work ON request (id) WHERE work <> '';

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
