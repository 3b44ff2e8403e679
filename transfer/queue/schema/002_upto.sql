-- The first number of the catalog's files that are newer than the request: it is for
-- those before it. 0 is of requests before this was kept: they are for all.
ALTER TABLE request ADD COLUMN upto BIGINT NOT NULL DEFAULT 0;
