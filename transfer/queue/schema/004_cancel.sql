-- Why the file of a lease was cancelled by itself: its mover is to abort it. Empty: it was not.
ALTER TABLE lease ADD COLUMN stop {{text}} NOT NULL DEFAULT '';
