-- Sites that were added for jobs and are not in use, and since when.
CREATE TABLE unused (
  site {{text}} PRIMARY KEY,
  since BIGINT NOT NULL
);
