-- Tokens that users and agents were given. The tokens themselves are nowhere kept.
CREATE TABLE token (
  id {{text}} PRIMARY KEY,
  subject {{text}} NOT NULL,
  roles {{text}} NOT NULL, -- separated by spaces
  made_by {{text}} NOT NULL,
  made BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  revoked_by {{text}} NOT NULL,
  revoked BIGINT NOT NULL
);
CREATE INDEX token_made ON token (made, id);
