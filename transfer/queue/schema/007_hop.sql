-- Files of jobs with several hops that wait for another file of the job to end (state 10 of item).
ALTER TABLE request ADD COLUMN held_n BIGINT NOT NULL DEFAULT 0;
CREATE TABLE hop (
  item {{key}},
  after BIGINT NOT NULL,        -- the item that it waits for
  made BIGINT NOT NULL          -- the item whose copy it removes; 0: it is a hop, and goes if the one before has arrived
);
