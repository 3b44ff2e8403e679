-- When the transfer of a temporary file was last known to run: the search for the file ends some time later.
ALTER TABLE leftover ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
UPDATE leftover SET since = due;
