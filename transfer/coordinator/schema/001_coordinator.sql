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
