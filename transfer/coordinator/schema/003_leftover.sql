-- Temporary files that copies have made, or may have, at sites that tell no agent of
-- theirs: they are removed, by name, unless the copy goes well. Written before the copy
-- begins.
CREATE TABLE leftover (
  site {{text}} NOT NULL,
  path {{text}} NOT NULL,   -- below the site's root
  item BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  due BIGINT NOT NULL,      -- when it is looked for
  tries BIGINT NOT NULL,    -- that nobody answered, in a row
  gone BOOLEAN NOT NULL,    -- it was not there, or was removed, the last time
  PRIMARY KEY (site, path)
);
CREATE INDEX leftover_due ON leftover (due);
CREATE INDEX leftover_item ON leftover (item, epoch);
