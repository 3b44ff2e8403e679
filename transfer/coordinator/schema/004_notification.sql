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
