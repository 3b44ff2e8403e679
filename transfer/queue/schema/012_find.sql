-- Jobs are found by these columns. state is the state with which a job has ended, as its API names it; empty while it is open, and ? in
-- older jobs until a coordinator has read them. user_name is another name of the user, and empty if there is none. source and dest are
-- storage elements, and empty if there are several.
ALTER TABLE job ADD COLUMN state {{text}} NOT NULL DEFAULT '?';
ALTER TABLE job ADD COLUMN ended BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN user_name {{text}} NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN credential {{text}} NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN source {{text}} NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN dest {{text}} NOT NULL DEFAULT '';
CREATE INDEX job_state ON job (state, made);
CREATE INDEX job_ended ON job (state, ended);
CREATE INDEX job_by ON job (made_by, state, made, ended);
CREATE INDEX job_user ON job (user_name, state, made, ended) WHERE user_name <> '';
CREATE INDEX job_vo ON job (vo, state, made, ended);
CREATE INDEX job_from ON job (source, state, made, ended);
CREATE INDEX job_to ON job (dest, state, made, ended);
