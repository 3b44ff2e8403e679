-- What is where. Times are nanoseconds since 1970, 0 is never.

CREATE TABLE site (
  name {{text}} PRIMARY KEY,
  kind {{text}} NOT NULL,
  url {{text}} NOT NULL,
  max BIGINT NOT NULL,
  free BIGINT NOT NULL,         -- -1: not known
  seen BIGINT NOT NULL,
  up BOOLEAN NOT NULL,
  problem {{text}} NOT NULL,
  secret {{blob}},              -- encrypted by who stores it
  root {{text}} NOT NULL DEFAULT '' -- by what the root of an agent's site is known; '': by nothing yet
);

-- Sums are kept with what they sum up, so that showing a dataset reads its rows
-- here and in presence, however many files it has.
CREATE TABLE dataset (
  id {{id}},
  name {{text}} NOT NULL UNIQUE,
  blocks BIGINT NOT NULL,
  files BIGINT NOT NULL,
  bytes BIGINT NOT NULL
);

CREATE TABLE block (
  id {{id}},
  dataset BIGINT NOT NULL,
  name {{text}} NOT NULL,       -- '': files that were put into none
  files BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  UNIQUE (dataset, name)
);

CREATE TABLE file (
  id {{key}},                   -- from counter
  name {{text}} NOT NULL UNIQUE,
  dataset BIGINT NOT NULL,
  block BIGINT NOT NULL,
  size BIGINT NOT NULL,
  adler {{text}} NOT NULL,      -- 8 hex digits; '': not known
  more {{text}} NOT NULL,       -- other checksums
  -- who first read the checksum of a file that was registered without one; '': it was registered
  adler_by {{text}} NOT NULL DEFAULT ''
);
-- Pages of a dataset, and of its blocks, by name.
CREATE INDEX file_dataset ON file (dataset, name, block);

-- Only this package writes replicas, for others through Place and Spoil: they keep
-- presence, which is what shows where a dataset is.
CREATE TABLE replica (
  file BIGINT NOT NULL,
  site {{text}} NOT NULL,
  path {{text}} NOT NULL,       -- '': the file's name
  verified BIGINT NOT NULL,
  by {{text}} NOT NULL,
  bad {{text}} NOT NULL,        -- why it is no source any more
  PRIMARY KEY (file, site)
) {{keyed}};

-- How many good replicas of a dataset's files a site has. A site that ever had
-- one has a row.
CREATE TABLE presence (
  dataset BIGINT NOT NULL,
  site {{text}} NOT NULL,
  files BIGINT NOT NULL,
  PRIMARY KEY (dataset, site)
) {{keyed}};

-- The next number of a file.
CREATE TABLE counter (name {{text}} PRIMARY KEY, next BIGINT NOT NULL);
INSERT INTO counter (name, next) VALUES ('file', 1);
