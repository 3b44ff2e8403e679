-- Changes of files of jobs that are to be published, those of a file in their order.
CREATE TABLE file_change (
  id {{id}},
  at BIGINT NOT NULL,
  item BIGINT NOT NULL,
  epoch BIGINT NOT NULL,        -- of its latest lease
  was BIGINT NOT NULL,          -- state before; 0: it was added
  state BIGINT NOT NULL,
  source {{text}} NOT NULL      -- site of that lease; empty: it had none
);
