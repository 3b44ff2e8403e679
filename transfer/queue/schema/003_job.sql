-- Jobs of URL pairs. The files of a job are in its requests, one for each destination and activity. pair has what
-- the catalog has of other files; file of such an item is negative, a hash of its destination.
CREATE TABLE job (
  id {{text}} PRIMARY KEY,
  made_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  params {{text}} NOT NULL      -- JSON of the API that it came by
);
CREATE TABLE pair (
  item {{key}},
  number BIGINT NOT NULL,       -- of the file in its job
  sources {{text}} NOT NULL,    -- JSON, in the order of the submission
  dest {{text}} NOT NULL,       -- URL
  params {{text}} NOT NULL,     -- JSON of the API that it came by
  secret {{blob}}               -- encrypted by who stores it
);
ALTER TABLE request ADD COLUMN job {{text}} NOT NULL DEFAULT '';
ALTER TABLE request ADD COLUMN replaces BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE request ADD COLUMN orderly BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE request ADD COLUMN timeout BIGINT NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN streams BIGINT NOT NULL DEFAULT 0;
CREATE INDEX request_job ON request (job) WHERE job <> '';
