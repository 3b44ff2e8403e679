-- X.509 proxies that users have delegated.
CREATE TABLE delegation (
  id {{text}} NOT NULL,            -- of the user's credentials, as FTS3 makes it
  owner {{text}} NOT NULL,         -- subject of the user's certificate
  request {{blob}} NOT NULL,       -- key of the last certificate request, encrypted
  requested BIGINT NOT NULL,       -- when that was made
  proxy {{blob}} NOT NULL,         -- the proxy with its key and chain, encrypted; empty: none
  attributes {{text}} NOT NULL,    -- of VOMS, a line each
  expires BIGINT NOT NULL,         -- of the proxy; 0: there is none
  PRIMARY KEY (id, owner)
);
