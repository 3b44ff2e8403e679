-- What administrators have set through the API of FTS3.
CREATE TABLE setting (
  kind {{text}} NOT NULL,       -- se, link, share or global
  name {{text}} NOT NULL,
  value {{text}} NOT NULL,      -- JSON
  PRIMARY KEY (kind, name)
);
