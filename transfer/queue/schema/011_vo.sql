-- The virtual organization of a job's user; empty in older jobs.
ALTER TABLE job ADD COLUMN vo {{text}} NOT NULL DEFAULT '';
