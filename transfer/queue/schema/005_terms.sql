-- What a job asks besides, as JSON; empty: nothing.
ALTER TABLE request ADD COLUMN terms {{text}} NOT NULL DEFAULT '';
ALTER TABLE request ADD COLUMN deletes BOOLEAN NOT NULL DEFAULT FALSE; -- as terms say
