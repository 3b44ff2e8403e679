-- By what the root of an agent's site is known; '': by nothing yet.
ALTER TABLE site ADD COLUMN root {{text}} NOT NULL DEFAULT '';
