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
