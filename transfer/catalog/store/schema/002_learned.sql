-- Who first read the checksum of a file that was registered without one; '': it
-- was registered.
ALTER TABLE file ADD COLUMN adler_by {{text}} NOT NULL DEFAULT '';
