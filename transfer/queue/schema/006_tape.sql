-- Files that wait for a tape system (states 8 and 9 of item), or whose disk copies it keeps for them.
ALTER TABLE request ADD COLUMN staging_n BIGINT NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN archiving_n BIGINT NOT NULL DEFAULT 0;
CREATE TABLE tape (
  item BIGINT NOT NULL,
  kind BIGINT NOT NULL,         -- 1: its source is brought online, 2: its destination is archived
  step BIGINT NOT NULL,         -- of tape.go
  site {{text}} NOT NULL,
  path {{text}} NOT NULL,       -- below the site's root
  metadata {{text}} NOT NULL,   -- for the tape system, JSON
  request {{text}} NOT NULL,    -- id that the tape system gave; empty: it was not asked yet
  began BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  until BIGINT NOT NULL,        -- when the file fails
  due BIGINT NOT NULL,          -- when the tape system is asked next; 0: not
  PRIMARY KEY (item, kind)
) {{keyed}};
CREATE INDEX tape_due ON tape (due) WHERE due > 0;
