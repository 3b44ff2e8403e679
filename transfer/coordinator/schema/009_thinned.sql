-- Samples before this time are one for each minute.
CREATE TABLE thinned (
  one {{key}},
  at BIGINT NOT NULL
);
INSERT INTO thinned (one, at) VALUES (1, 0);
-- Tokens that have expired.
CREATE INDEX bearer_expires ON bearer (expires);
