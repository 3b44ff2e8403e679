-- What a coordinator keeps besides the catalog and the queue. Times are
-- nanoseconds since 1970, 0 is never.

-- What the scheduler knew of a link when it was last asked, as JSON.
CREATE TABLE link (
  source {{text}} NOT NULL,
  dest {{text}} NOT NULL,
  kept {{text}} NOT NULL,
  PRIMARY KEY (source, dest)
);

-- What the hosts of agents went through.
CREATE TABLE sample (
  site {{text}} NOT NULL,
  at BIGINT NOT NULL,
  cpu DOUBLE PRECISION NOT NULL,
  memory DOUBLE PRECISION NOT NULL,
  rest {{text}} NOT NULL,
  PRIMARY KEY (site, at)
) {{keyed}};
CREATE INDEX sample_at ON sample (at);

-- Scans of folders that agents were asked for.
CREATE TABLE scan (
  id {{id}},
  site {{text}} NOT NULL,
  dataset {{text}} NOT NULL,
  path {{text}} NOT NULL,
  asked_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  done BOOLEAN NOT NULL,
  files BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  problems {{text}} NOT NULL
);

-- Tokens that users and agents were given. The tokens themselves are nowhere kept.
CREATE TABLE token (
  id {{text}} PRIMARY KEY,
  subject {{text}} NOT NULL,
  roles {{text}} NOT NULL, -- separated by spaces
  made_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  revoked_by {{text}} NOT NULL,
  revoked BIGINT NOT NULL
);
CREATE INDEX token_made ON token (made, id);

-- Temporary files that copies have made, or may have, at sites that tell no agent of
-- theirs: they are removed, by name, unless the copy goes well. Written before the copy
-- begins.
CREATE TABLE leftover (
  site {{text}} NOT NULL,
  path {{text}} NOT NULL,   -- below the site's root
  item BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  due BIGINT NOT NULL,      -- when it is looked for
  tries BIGINT NOT NULL,    -- that nobody answered, in a row
  gone BOOLEAN NOT NULL,    -- it was not there, or was removed, the last time
  since BIGINT NOT NULL,    -- when its transfer was last known to run: the search for it ends some time later
  PRIMARY KEY (site, path)
);
CREATE INDEX leftover_due ON leftover (due);
CREATE INDEX leftover_item ON leftover (item, epoch);

-- Notifications about requests that have ended, for each target. Those that have not ended are
-- delivered when they are due.
CREATE TABLE notification (
  target {{text}} NOT NULL,
  id {{text}} NOT NULL,
  request BIGINT NOT NULL,
  status {{text}} NOT NULL,     -- of the request
  body {{text}} NOT NULL,       -- JSON
  made BIGINT NOT NULL,
  due BIGINT NOT NULL,
  tries BIGINT NOT NULL,
  problem {{text}} NOT NULL,    -- of the last attempt; empty: it has none
  ended BIGINT NOT NULL,        -- when it was delivered or given up
  PRIMARY KEY (target, id)
);
CREATE INDEX notification_due ON notification (target, due) WHERE ended = 0;
CREATE INDEX notification_made ON notification (made);

-- Up to which event requests that have ended have become notifications. No row: there are no targets.
CREATE TABLE notified (
  one {{key}},
  event BIGINT NOT NULL
);

-- Tokens of files of jobs that are renewed at their issuer. Those that give the same rights are one.
CREATE TABLE bearer (
  id {{text}} PRIMARY KEY,      -- a digest of the rights
  issuer {{text}} NOT NULL,
  scope {{text}} NOT NULL,
  audience {{text}} NOT NULL,   -- JSON
  secret {{blob}} NOT NULL,     -- the token and the refresh token, JSON, encrypted
  expires BIGINT NOT NULL,      -- of the token
  due BIGINT NOT NULL           -- when it is exchanged, before it ends; 0: never
);
CREATE INDEX bearer_due ON bearer (due) WHERE due > 0;
CREATE INDEX bearer_expires ON bearer (expires);

-- The jobs that use a token.
CREATE TABLE bearer_job (
  bearer {{text}} NOT NULL,
  job {{text}} NOT NULL,
  PRIMARY KEY (bearer, job)
);
CREATE INDEX bearer_job_job ON bearer_job (job);

-- Storage elements that get no new copies, and users who are refused. Times are nanoseconds since 1970, 0 is never.
CREATE TABLE ban (
  kind {{text}} NOT NULL,       -- se or dn
  name {{text}} NOT NULL,
  status {{text}} NOT NULL,     -- CANCEL; WAIT: waiting files stay; WAIT_AS: new ones are accepted as well
  until BIGINT NOT NULL,        -- when a ban that lets files wait becomes one that cancels them
  message {{text}} NOT NULL,
  made_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  PRIMARY KEY (kind, name)
);

-- X.509 proxies that users have delegated.
CREATE TABLE delegation (
  id {{text}} NOT NULL,            -- of the user's credentials, as FTS3 makes it
  owner {{text}} NOT NULL,         -- subject of the user's certificate
  request {{blob}} NOT NULL,       -- key of the last certificate request, encrypted
  requested BIGINT NOT NULL,       -- when that was made
  proxy {{blob}} NOT NULL,         -- the proxy with its key and chain, encrypted; empty: none
  attributes {{text}} NOT NULL,    -- of VOMS, a line each
  expires BIGINT NOT NULL,         -- of the proxy; 0: there is none
  PRIMARY KEY (id, owner)
);

-- What administrators have set through the API of FTS3.
CREATE TABLE setting (
  kind {{text}} NOT NULL,       -- se, link, share or global
  name {{text}} NOT NULL,
  value {{text}} NOT NULL,      -- JSON
  PRIMARY KEY (kind, name)
);

-- Samples before this time are one for each minute.
CREATE TABLE thinned (
  one {{key}},
  at BIGINT NOT NULL
);
INSERT INTO thinned (one, at) VALUES (1, 0);

-- Sites that were added for jobs and are not in use, and since when.
CREATE TABLE unused (
  site {{text}} PRIMARY KEY,
  since BIGINT NOT NULL
);
