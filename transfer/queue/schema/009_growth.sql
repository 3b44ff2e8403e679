-- Requests are many after a year, and few of them are open. Each list, and each look of the clock, has an index.
CREATE INDEX request_open ON request (id) WHERE ended = 0;
CREATE INDEX request_expires ON request (expires) WHERE ended = 0 AND expires > 0;
CREATE INDEX request_ended ON request (ended) WHERE ended > 0;
CREATE INDEX request_dataset ON request (dataset, id);
CREATE INDEX request_by ON request (made_by, id);
-- Of an expression: SQLite would take one of the column for the open requests of a destination as well.
CREATE INDEX request_to ON request ((dest || ''), id);
CREATE INDEX request_status ON request (status, id);
