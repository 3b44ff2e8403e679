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

-- The jobs that use a token.
CREATE TABLE bearer_job (
  bearer {{text}} NOT NULL,
  job {{text}} NOT NULL,
  PRIMARY KEY (bearer, job)
);
CREATE INDEX bearer_job_job ON bearer_job (job);
