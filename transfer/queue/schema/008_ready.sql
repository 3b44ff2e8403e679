-- Finds the requests of a destination that have ready files, however many others are open.
CREATE INDEX request_ready ON request (dest) WHERE ended = 0 AND stop = '' AND ready_n > 0;
